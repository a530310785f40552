//! The rows of the shop. Each is computed from its table and its number alone, so that statements can ask for existing
//! values without reading them.

use std::fmt::Write;

use super::calendar::{DAYS, SECONDS_OF_DAY, moment};
use crate::random::{SplitMix64, mix};

/// Number of categories; the first ones are the parents of the others.
pub const CATEGORIES: u64 = 60;
const PARENTS: u64 = 10;
/// Number of forums.
pub const FORUMS: u64 = 20;
/// The most items of an order.
const ITEMS: u64 = 3;
/// First names.
const NAMES: [&str; 40] = [
    "Anna", "Ben", "Carla", "David", "Elena", "Felix", "Greta", "Hugo", "Ida", "Jonas", "Karin",
    "Leo", "Mara", "Nils", "Olga", "Paul", "Quinn", "Rosa", "Simon", "Tara", "Udo", "Vera",
    "Willem", "Xenia", "Yann", "Zoe", "Amir", "Bella", "Chen", "Dora", "Emil", "Fatma", "Goran",
    "Hanna", "Ivan", "Julia", "Kofi", "Lena", "Milan", "Nora",
];
const FAMILIES: [&str; 40] = [
    "Abel", "Baker", "Costa", "Dietrich", "Evans", "Fischer", "Garcia", "Hansen", "Ivanov",
    "Jensen", "Keller", "Larsen", "Moreau", "Novak", "Olsen", "Petrov", "Quist", "Rossi",
    "Schmidt", "Tanaka", "Urban", "Vogel", "Weber", "Xu", "Young", "Zimmer", "Adler", "Brandt",
    "Conti", "Duval", "Eriksen", "Fuchs", "Gruber", "Horvat", "Ito", "Jansen", "Kovac", "Lopez",
    "Meyer", "Nagy",
];
/// Words of product names and of texts.
pub const WORDS: [&str; 48] = [
    "amber", "birch", "copper", "desk", "engine", "fabric", "garden", "handle", "iron", "jacket",
    "kettle", "lamp", "mirror", "needle", "oak", "paper", "quilt", "ribbon", "silver", "table",
    "umbrella", "velvet", "wheel", "yarn", "zinc", "bottle", "candle", "drawer", "easel", "flute",
    "glove", "hammer", "inkwell", "jar", "knife", "ladder", "marble", "napkin", "oven", "pillow",
    "rack", "saddle", "tile", "urn", "vase", "wallet", "basket", "chair",
];
pub const COUNTRIES: [&str; 20] = [
    "DE", "FR", "IT", "ES", "PL", "NL", "SE", "DK", "NO", "FI", "US", "CA", "BR", "JP", "CN", "IN",
    "AU", "ZA", "TR", "GB",
];
pub const CITIES: [&str; 20] = [
    "Berlin", "Paris", "Rome", "Madrid", "Warsaw", "Delft", "Malmo", "Odense", "Bergen", "Turku",
    "Boston", "Ottawa", "Recife", "Osaka", "Wuhan", "Pune", "Perth", "Durban", "Izmir", "Leeds",
];
pub const COLORS: [&str; 8] = ["red", "green", "blue", "black", "white", "grey", "brown", "pink"];
pub const STATUSES: [&str; 6] =
    ["pending", "paid", "shipped", "completed", "cancelled", "refunded"];
const METHODS: [&str; 4] = ["card", "transfer", "wallet", "voucher"];

/// The size of the shop: how many rows of each kind there are.
#[derive(Clone, Copy, Debug)]
pub struct Shop {
    pub users: u64,
    pub products: u64,
    pub orders: u64,
    pub reviews: u64,
    pub topics: u64,
    pub posts: u64,
}

/// A table that is filled.
pub struct TableRows {
    pub name: &'static str,
    /// The largest row number.
    pub count: fn(&Shop) -> u64,
    /// Appends the rows of a number (mostly one) as `,(…)`.
    pub write: fn(&Shop, u64, &mut String),
}

/// The tables, parents before the children that refer to them.
pub const TABLES: [TableRows; 11] = [
    TableRows { name: "categories", count: |_| CATEGORIES, write: category },
    TableRows { name: "users", count: |shop| shop.users, write: user },
    TableRows { name: "sessions", count: |shop| shop.users, write: session },
    TableRows { name: "addresses", count: |shop| shop.users, write: address },
    TableRows { name: "products", count: |shop| shop.products, write: product },
    TableRows { name: "orders", count: |shop| shop.orders, write: order },
    TableRows { name: "order_items", count: |shop| shop.orders, write: items },
    TableRows { name: "payments", count: |shop| shop.orders, write: payment },
    TableRows { name: "reviews", count: |shop| shop.reviews, write: review },
    TableRows { name: "topics", count: |shop| shop.topics, write: topic },
    TableRows { name: "posts", count: |shop| shop.posts, write: post },
];

impl Shop {
    /// 50,000 users with 500,000 orders, or another share of that.
    pub fn new(scale: f64) -> Self {
        let share = |rows: u64, least: u64| ((rows as f64 * scale) as u64).max(least);
        let (users, orders) = (share(50_000, 500), share(500_000, 5_000));
        let products = share(5_000, 300);
        Self { users, products, orders, reviews: orders / 5, topics: users / 5, posts: users * 2 }
    }

    /// The second at which an order was made: unique, and almost in the order of the keys.
    pub fn order_second(&self, order: u64) -> u64 {
        second((order - 1) ^ 5, self.orders)
    }

    /// A user's address.
    pub fn email(&self, user: u64) -> String {
        let (name, family) = names(user);
        let (name, family) = (name.to_lowercase(), family.to_lowercase());
        format!("{name}.{family}.{user}@example.org")
    }

    /// Any user; low numbers are far more frequent.
    fn customer(&self, random: &mut SplitMix64) -> u64 {
        often_low(random, self.users)
    }

    fn status(&self, order: u64) -> &'static str {
        let mut random = row("status", order);
        if order > self.orders - self.orders / 200 && random.below(2) == 0 {
            return STATUSES[0];
        }
        STATUSES[match random.below(1_000) {
            ..20 => 0,
            20..100 => 1,
            100..250 => 2,
            250..950 => 3,
            950..980 => 4,
            _ => 5,
        }]
    }

    /// An order's products with quantity and price in cents.
    fn items(&self, order: u64) -> Vec<(u64, u64, u64)> {
        let mut random = row("items", order);
        let count = 1 + random.below(ITEMS as usize);
        let mut item = || {
            let product = often_low(&mut random, self.products);
            (product, 1 + random.below(3) as u64, price(product))
        };
        (0..count).map(|_| item()).collect()
    }

    fn total(&self, order: u64) -> u64 {
        self.items(order).iter().map(|(_, quantity, price)| quantity * price).sum()
    }
}

/// The random stream of a row.
pub fn row(table: &str, number: u64) -> SplitMix64 {
    let name = table.bytes().fold(7, |hash, byte| mix(hash ^ u64::from(byte)));
    SplitMix64::new(mix(name ^ number))
}

/// A number from 1 on; small ones are far more frequent.
fn often_low(random: &mut SplitMix64, most: u64) -> u64 {
    let part = random.unit();
    1 + (part * part * most as f64) as u64
}

/// The second of the `place`th of `of` events, which are spread over all days.
pub fn second(place: u64, of: u64) -> u64 {
    let step = DAYS * SECONDS_OF_DAY / (of + 8);
    place * step + mix(place) % step
}

fn of<'a>(random: &mut SplitMix64, list: &[&'a str]) -> &'a str {
    list[random.below(list.len())]
}

fn words(random: &mut SplitMix64, count: usize) -> String {
    let words: Vec<&str> = (0..count).map(|_| of(random, &WORDS)).collect();
    words.join(" ")
}

fn names(user: u64) -> (&'static str, &'static str) {
    let mut random = row("names", user);
    (of(&mut random, &NAMES), of(&mut random, &FAMILIES))
}

/// A user's name.
pub fn name(user: u64) -> String {
    let (name, family) = names(user);
    format!("{name} {family} {}", user % 97)
}

/// A product's SKU.
pub fn sku(product: u64) -> String {
    format!("SKU-{:08X}", mix(product) >> 32)
}

/// A session's token.
pub fn token(user: u64) -> String {
    format!("{:016x}{:016x}", mix(user ^ 0xabcd), user)
}

/// A payment's reference.
pub fn reference(order: u64) -> String {
    format!("P{order:08}{:07X}", mix(order) >> 36)
}

/// A word that few texts contain.
pub fn rare_word(number: u64) -> String {
    format!("model{}", number % 500)
}

/// A category's URL slug.
pub fn slug(category: u64) -> String {
    format!("{}-{category}", WORDS[category as usize % WORDS.len()])
}

/// A coupon code of one of 500 campaigns.
pub fn coupon(number: u64) -> String {
    format!("{}{:03}", WORDS[number as usize % 8].to_uppercase(), number % 500)
}

/// A product's price, in cents.
fn price(product: u64) -> u64 {
    199 + mix(product ^ 0x9999) % 29_800
}

fn money(cents: u64) -> String {
    format!("{}.{:02}", cents / 100, cents % 100)
}

/// Appends a row; writing to a `String` cannot fail.
macro_rules! add {
    ($out:expr, $($argument:tt)*) => {{
        let _ = write!($out, ",({})", format_args!($($argument)*));
    }};
}

fn category(_: &Shop, id: u64, out: &mut String) {
    let parent = if id <= PARENTS { "NULL".to_owned() } else { (1 + id % PARENTS).to_string() };
    add!(out, "{id},{parent},'{} {id}','{}'", WORDS[id as usize % WORDS.len()], slug(id));
}

fn user(shop: &Shop, id: u64, out: &mut String) {
    let mut random = row("users", id);
    let country = COUNTRIES[often_low(&mut random, COUNTRIES.len() as u64) as usize - 1];
    let created = second((id - 1) ^ 5, shop.users);
    let rest = DAYS * SECONDS_OF_DAY - created;
    let login = match random.below(10) {
        0 => "NULL".to_owned(),
        _ => format!("'{}'", moment(created + random.next() % rest)),
    };
    let (active, credits) = (u8::from(random.below(20) > 0), random.below(500));
    let (email, created) = (shop.email(id), moment(created));
    add!(out, "{id},'{email}','{}','{country}',{active},{credits},'{created}',{login}", name(id));
}

fn session(shop: &Shop, user: u64, out: &mut String) {
    let mut random = row("sessions", user);
    let expires = moment(random.next() % (DAYS * SECONDS_OF_DAY));
    let (owner, ip) = (shop.customer(&mut random), random.below(250));
    add!(out, "'{}',{owner},'10.0.{ip}.{}','{expires}'", token(user), user % 250);
}

fn address(_: &Shop, user: u64, out: &mut String) {
    let mut random = row("addresses", user);
    for (at, kind) in ["billing", "shipping"].into_iter().enumerate().take(1 + random.below(2)) {
        let (street, number) = (of(&mut random, &WORDS), 1 + random.below(99));
        let (city, code) = (of(&mut random, &CITIES), random.below(90_000) + 10_000);
        let id = user * 2 - 1 + at as u64;
        add!(out, "{id},{user},'{kind}','{street} street {number}','{city}','{code}'");
    }
}

fn product(_: &Shop, id: u64, out: &mut String) {
    let mut random = row("products", id);
    let category = PARENTS + 1 + random.next() % (CATEGORIES - PARENTS);
    let (name, color) = (words(&mut random, 3), of(&mut random, &COLORS));
    let (stock, active) = (random.below(400), u8::from(random.below(10) > 0));
    let attributes = format!("{{\"size\": {}, \"color\": \"{color}\"}}", random.below(50));
    let created = moment(random.next() % (DAYS * SECONDS_OF_DAY));
    let (sku, price) = (sku(id), money(price(id)));
    add!(
        out,
        "{id},'{sku}',{category},'{name} {id}',{price},{stock},{active},'{attributes}','{created}'"
    );
}

fn order(shop: &Shop, id: u64, out: &mut String) {
    let mut random = row("orders", id);
    let (user, status, total) =
        (shop.customer(&mut random), shop.status(id), money(shop.total(id)));
    let coupon = match random.below(10) {
        0 => format!("'{}'", coupon(random.next() % 500)),
        _ => "NULL".to_owned(),
    };
    let created = shop.order_second(id);
    let shipped = match status {
        "pending" | "paid" | "cancelled" => "NULL".to_owned(),
        _ => format!("'{}'", moment(created + 3_600 + random.next() % (9 * SECONDS_OF_DAY))),
    };
    add!(out, "{id},{user},'{status}',{total},{coupon},'{}',{shipped}", moment(created));
}

fn items(shop: &Shop, order: u64, out: &mut String) {
    for (at, (product, quantity, price)) in (1..).zip(shop.items(order)) {
        let id = (order - 1) * ITEMS + at;
        add!(out, "{id},{order},{product},{quantity},{}", money(price));
    }
}

fn payment(shop: &Shop, order: u64, out: &mut String) {
    let status = shop.status(order);
    let mut random = row("payments", order);
    // A few of those that are pending have been paid.
    if status == "cancelled" || status == "pending" && random.below(10) > 0 {
        return;
    }
    let method = METHODS[often_low(&mut random, METHODS.len() as u64) as usize - 1];
    let paid = moment(shop.order_second(order) + random.next() % 7_200);
    let (reference, amount) = (reference(order), money(shop.total(order)));
    add!(out, "{order},{order},'{reference}','{method}',{amount},'{paid}'");
}

fn review(shop: &Shop, id: u64, out: &mut String) {
    let mut random = row("reviews", id);
    let (product, user) = (often_low(&mut random, shop.products), shop.customer(&mut random));
    let rating = 5 - often_low(&mut random, 5) + 1;
    let (title, length) = (words(&mut random, 4), 15 + random.below(40));
    let (body, rare) = (words(&mut random, length), rare_word(random.next()));
    let created = moment(random.next() % (DAYS * SECONDS_OF_DAY));
    add!(out, "{id},{product},{user},{rating},'{title}','{body} {rare}','{created}'");
}

fn topic(shop: &Shop, id: u64, out: &mut String) {
    let mut random = row("topics", id);
    let (forum, user) = (1 + random.next() % FORUMS, shop.customer(&mut random));
    let (pinned, views) = (u8::from(random.below(50) == 0), random.below(10_000));
    let (title, last) = (words(&mut random, 6), moment(random.next() % (DAYS * SECONDS_OF_DAY)));
    add!(out, "{id},{forum},{user},'{title}',{pinned},{views},'{last}'");
}

fn post(shop: &Shop, id: u64, out: &mut String) {
    let mut random = row("posts", id);
    let (topic, user) = (often_low(&mut random, shop.topics), shop.customer(&mut random));
    let length = 10 + random.below(60);
    let (body, created) = (words(&mut random, length), moment(second(id - 1, shop.posts)));
    add!(out, "{id},{topic},{user},'{body}','{created}'");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_have_moments_of_their_own_within_the_days() {
        let shop = Shop::new(0.01);
        let mut seconds: Vec<u64> =
            (1..=shop.orders).map(|order| shop.order_second(order)).collect();
        assert!(!seconds.is_sorted());
        seconds.sort_unstable();
        assert!(seconds.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(seconds.last() < Some(&(DAYS * SECONDS_OF_DAY)));
    }

    #[test]
    fn the_same_rows_are_written_again_and_all_tables_have_some() {
        let shop = Shop::new(0.01);
        for table in &TABLES {
            let write = || {
                let mut out = String::new();
                (1..=50).for_each(|number| (table.write)(&shop, number, &mut out));
                out
            };
            assert!(write().starts_with(",("), "{}", table.name);
            assert_eq!(write(), write());
        }
    }
}
