//! The rows of the adversarial tables and the literals for their statements.

use std::fmt::Write;

use mysql::Value;

use super::{
    calendar::moment,
    rows::{Shop, TableRows, row, second},
};

/// Number of cities, and of cities in a region: the city determines the region.
const CITIES: u64 = 1_000;
const CITIES_OF_REGION: u64 = 50;
/// Amounts are drawn below this; none lies in the gap.
const AMOUNTS: u64 = 100_000;
const GAP: std::ops::Range<u64> = 40_000..50_000;

/// The tables.
pub const TABLES: [TableRows; 3] = [
    TableRows { name: "skewed", count: |shop| shop.orders, write: skewed },
    TableRows { name: "parents", count: parents, write: parent },
    TableRows { name: "children", count: |shop| shop.orders / 2, write: child },
];

fn parents(shop: &Shop) -> u64 {
    shop.users / 25
}

fn amount(number: u64) -> u64 {
    let amount = number % AMOUNTS;
    if GAP.contains(&amount) { amount + GAP.end } else { amount }
}

/// One row in 100 has a rare kind, and all of these are among the oldest.
fn skewed(shop: &Shop, id: u64, out: &mut String) {
    let mut random = row("skewed", id);
    let is_rare = id <= shop.orders / 20 && id.is_multiple_of(5);
    let kind = if is_rare { 2 + random.below(8) } else { 1 };
    let city = random.next() % CITIES;
    let (region, amount) = (city / CITIES_OF_REGION, amount(random.next()));
    let created = moment(second(id - 1, shop.orders));
    // Writing to a `String` cannot fail.
    let _ = write!(out, ",({id},{kind},{region},{city},{amount},'{created}','row {id} of {kind}')");
}

fn parent(_: &Shop, id: u64, out: &mut String) {
    let _ = write!(out, ",({id},{},'parent {id}')", id % 10);
}

/// Half of all children belong to the first parent; one in 100 has a rare state.
fn child(shop: &Shop, id: u64, out: &mut String) {
    let mut random = row("children", id);
    let parent = if random.below(2) == 0 { 1 } else { 1 + random.next() % parents(shop) };
    let state = if random.below(100) == 0 { 1 + random.below(4) } else { 0 };
    let _ = write!(out, ",({id},{parent},{state},{})", amount(random.next()));
}

/// The literal of a marker; `below` draws a name's number once per statement.
pub fn literal(marker: &str, below: &mut dyn FnMut(&'static str, u64) -> u64) -> Option<Value> {
    let mut city = || below("city", CITIES);
    let number = match marker {
        "city_number" => city(),
        "its_region" => city() / CITIES_OF_REGION,
        "other_region" => (city() / CITIES_OF_REGION + 1) % (CITIES / CITIES_OF_REGION),
        "rare_kind" => 2 + below("kind", 8),
        "rare_state" => 1 + below("state", 4),
        "parent_kind" => below("parent kind", 10),
        "skewed_amount" => amount(below("skewed amount", AMOUNTS)),
        "gap" => GAP.start + 100 + below("gap", 8_000),
        _ => return None,
    };
    i64::try_from(number).ok().map(Value::Int)
}
