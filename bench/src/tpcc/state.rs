//! The consistency conditions, computed from rows instead of by SQL: for a follower without joins.

use rustc_hash::FxHashMap;

/// The columns of one table as numbers. Amounts are in hundredths; a timestamp is only null or not null.
#[derive(Clone, Debug, Default)]
pub struct Numbers(pub Vec<Vec<Option<i64>>>);

/// The columns of all tables that the conditions need.
#[derive(Clone, Debug, Default)]
pub struct State {
    tables: [Numbers; 7],
}

/// The tables and columns of a [`State`], in its order.
pub const COLUMNS: [(&str, &[&str]); 7] = [
    ("warehouse", &["w_id", "w_ytd"]),
    ("district", &["d_w_id", "d_id", "d_ytd", "d_next_o_id"]),
    ("customer", &["c_w_id", "c_d_id", "c_id", "c_balance", "c_ytd_payment"]),
    ("history", &["h_c_w_id", "h_c_d_id", "h_c_id", "h_w_id", "h_d_id", "h_amount"]),
    ("new_order", &["no_w_id", "no_d_id", "no_o_id"]),
    ("oorder", &["o_w_id", "o_d_id", "o_id", "o_c_id", "o_carrier_id", "o_ol_cnt"]),
    ("order_line", &["ol_w_id", "ol_d_id", "ol_o_id", "ol_delivery_d", "ol_amount"]),
];

/// A warehouse and a district.
type District = [i64; 2];
/// An order or a customer of a district.
type InDistrict = [i64; 3];
/// Sums by key.
type Sums<K> = FxHashMap<K, i64>;

impl Numbers {
    fn rows(&self) -> impl Iterator<Item = usize> {
        0..self.0.first().map_or(0, Vec::len)
    }

    fn get(&self, column: usize, row: usize) -> Option<i64> {
        self.0.get(column)?.get(row).copied().flatten()
    }

    /// The first `N` columns of a row; NULL becomes 0, which is no key.
    fn key<const N: usize>(&self, row: usize) -> [i64; N] {
        std::array::from_fn(|column| self.number(column, row))
    }

    fn number(&self, column: usize, row: usize) -> i64 {
        self.get(column, row).unwrap_or(0)
    }

    fn sums<K: std::hash::Hash + Eq>(
        &self,
        key: impl Fn(usize) -> K,
        value: impl Fn(usize) -> i64,
    ) -> Sums<K> {
        let mut sums = Sums::default();
        self.rows().for_each(|row| *sums.entry(key(row)).or_default() += value(row));
        sums
    }

    fn broken(&self, is_broken: impl Fn(usize) -> bool) -> u64 {
        self.rows().filter(|&row| is_broken(row)).count() as u64
    }
}

impl State {
    /// The state of these tables, in the order of [`COLUMNS`].
    pub fn new(tables: [Numbers; 7]) -> Self {
        Self { tables }
    }

    /// The numbers of the violated conditions, each with its number of violating rows. The eleventh, which holds only
    /// at the beginning, is left out.
    pub fn broken_conditions(&self) -> Vec<(usize, u64)> {
        let counts = [
            (1, self.warehouses_are_their_districts()),
            (2, self.next_order_follows_the_newest()),
            (3, self.new_orders_have_no_gaps()),
            (4, self.districts_have_their_lines()),
            (5, self.orders_without_carrier_are_new()),
            (6, self.orders_have_their_lines()),
            (7, self.lines_are_delivered_with_their_order()),
            (8, self.warehouses_are_their_history()),
            (9, self.districts_are_their_history()),
            (10, self.customers_owe_what_is_not_paid()),
            (12, self.customers_owe_and_paid_what_was_delivered()),
        ];
        counts.into_iter().filter(|(_, rows)| *rows > 0).collect()
    }

    fn warehouses_are_their_districts(&self) -> u64 {
        let [warehouses, districts, ..] = &self.tables;
        let sums = districts.sums(|row| districts.number(0, row), |row| districts.number(2, row));
        warehouses.broken(|row| {
            let sum = sums.get(&warehouses.number(0, row));
            sum.is_some_and(|&sum| sum != warehouses.number(1, row))
        })
    }

    fn next_order_follows_the_newest(&self) -> u64 {
        let [_, districts, _, _, new_orders, orders, _] = &self.tables;
        let (newest, waiting) = (newest(orders), newest(new_orders));
        districts.broken(|row| {
            let district: District = districts.key(row);
            let last = districts.number(3, row) - 1;
            let waiting = waiting.get(&district).copied();
            newest
                .get(&district)
                .is_some_and(|&newest| last != newest || last != waiting.unwrap_or(newest))
        })
    }

    fn new_orders_have_no_gaps(&self) -> u64 {
        let new_orders = &self.tables[4];
        let mut ranges: FxHashMap<District, (i64, i64, i64)> = FxHashMap::default();
        for row in new_orders.rows() {
            let order = new_orders.number(2, row);
            let range = ranges.entry(new_orders.key(row)).or_insert((order, order, 0));
            *range = (range.0.min(order), range.1.max(order), range.2 + 1);
        }
        let gaps = ranges.values().filter(|(first, last, count)| last - first + 1 != *count);
        gaps.count() as u64
    }

    fn districts_have_their_lines(&self) -> u64 {
        let [.., orders, lines] = &self.tables;
        let said: Sums<District> = orders.sums(|row| orders.key(row), |row| orders.number(5, row));
        let counted: Sums<District> = lines.sums(|row| lines.key(row), |_| 1);
        let differ = |(district, said): &(&District, &i64)| {
            counted.get(*district).is_some_and(|counted| counted != *said)
        };
        said.iter().filter(differ).count() as u64
    }

    fn orders_without_carrier_are_new(&self) -> u64 {
        let [.., new_orders, orders, _] = &self.tables;
        let new: Sums<InDistrict> = new_orders.sums(|row| new_orders.key(row), |_| 1);
        orders.broken(|row| orders.get(4, row).is_none() != new.contains_key(&orders.key(row)))
    }

    fn orders_have_their_lines(&self) -> u64 {
        let [.., orders, lines] = &self.tables;
        let counted: Sums<InDistrict> = lines.sums(|row| lines.key(row), |_| 1);
        orders.broken(|row| {
            orders.number(5, row) != counted.get(&orders.key(row)).copied().unwrap_or(0)
        })
    }

    fn lines_are_delivered_with_their_order(&self) -> u64 {
        let [.., orders, lines] = &self.tables;
        let carried: FxHashMap<InDistrict, bool> =
            orders.rows().map(|row| (orders.key(row), orders.get(4, row).is_some())).collect();
        lines.broken(|row| {
            let carried = carried.get(&lines.key(row));
            carried.is_some_and(|&carried| carried != lines.get(3, row).is_some())
        })
    }

    fn warehouses_are_their_history(&self) -> u64 {
        let [warehouses, _, _, history, ..] = &self.tables;
        let paid = history.sums(|row| history.number(3, row), |row| history.number(5, row));
        warehouses.broken(|row| {
            let paid = paid.get(&warehouses.number(0, row));
            paid.is_some_and(|&paid| paid != warehouses.number(1, row))
        })
    }

    fn districts_are_their_history(&self) -> u64 {
        let [_, districts, _, history, ..] = &self.tables;
        let district = |row| -> District { [history.number(3, row), history.number(4, row)] };
        let paid = history.sums(district, |row| history.number(5, row));
        districts.broken(|row| {
            let paid = paid.get(&districts.key(row));
            paid.is_some_and(|&paid| paid != districts.number(2, row))
        })
    }

    fn customers_owe_what_is_not_paid(&self) -> u64 {
        let [_, _, customers, history, ..] = &self.tables;
        let delivered = self.delivered();
        let paid: Sums<InDistrict> =
            history.sums(|row| history.key(row), |row| history.number(5, row));
        customers.broken(|row| {
            let customer: InDistrict = customers.key(row);
            let sum = |sums: &Sums<InDistrict>| sums.get(&customer).copied().unwrap_or(0);
            customers.number(3, row) != sum(&delivered) - sum(&paid)
        })
    }

    fn customers_owe_and_paid_what_was_delivered(&self) -> u64 {
        let customers = &self.tables[2];
        let delivered = self.delivered();
        customers.broken(|row| {
            let sum = delivered.get(&customers.key(row)).copied().unwrap_or(0);
            customers.number(3, row) + customers.number(4, row) != sum
        })
    }

    /// The delivered amount of each customer.
    fn delivered(&self) -> Sums<InDistrict> {
        let [.., orders, lines] = &self.tables;
        let whose: FxHashMap<InDistrict, i64> =
            orders.rows().map(|row| (orders.key(row), orders.number(3, row))).collect();
        let mut sums = Sums::default();
        for row in lines.rows().filter(|&row| lines.get(3, row).is_some()) {
            let order: InDistrict = lines.key(row);
            if let Some(&customer) = whose.get(&order) {
                let [warehouse, district, _] = order;
                *sums.entry([warehouse, district, customer]).or_default() += lines.number(4, row);
            }
        }
        sums
    }
}

/// The newest order of each district; the third column is the order's number.
fn newest(orders: &Numbers) -> Sums<District> {
    let mut newest = Sums::default();
    for row in orders.rows() {
        let order = orders.number(2, row);
        let known = newest.entry(orders.key(row)).or_insert(order);
        *known = order.max(*known);
    }
    newest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(rows: &[&[i64]]) -> Numbers {
        let width = rows.first().map_or(0, |row| row.len());
        let cell = |value: i64| (value != i64::MIN).then_some(value);
        let column = |column| rows.iter().map(|row| cell(row[column])).collect();
        Numbers((0..width).map(column).collect())
    }

    const NULL: i64 = i64::MIN;

    /// One warehouse and district, a delivered order of customer 1 and a new one of customer 2.
    fn state() -> [Numbers; 7] {
        [
            table(&[&[1, 300]]),
            table(&[&[1, 1, 300, 3]]),
            table(&[&[1, 1, 1, 400, 100], &[1, 1, 2, -200, 200]]),
            table(&[&[1, 1, 1, 1, 1, 100], &[1, 1, 2, 1, 1, 200]]),
            table(&[&[1, 1, 2]]),
            table(&[&[1, 1, 1, 1, 7, 2], &[1, 1, 2, 2, NULL, 1]]),
            table(&[&[1, 1, 1, 9, 200], &[1, 1, 1, 9, 300], &[1, 1, 2, NULL, 50]]),
        ]
    }

    fn broken(table: usize, column: usize, row: usize, value: Option<i64>) -> Vec<usize> {
        let mut tables = state();
        tables[table].0[column][row] = value;
        let broken = State::new(tables).broken_conditions();
        broken.into_iter().map(|(condition, _)| condition).collect()
    }

    #[test]
    fn conditions_hold_of_what_is_whole_and_break_with_half_a_transaction() {
        assert_eq!(State::new(state()).broken_conditions(), []);
        assert_eq!(broken(0, 1, 0, Some(301)), [1, 8]);
        assert_eq!(broken(1, 2, 0, Some(301)), [1, 9]);
        assert_eq!(broken(1, 3, 0, Some(4)), [2]);
        assert_eq!(broken(2, 3, 0, Some(401)), [10, 12]);
        assert_eq!(broken(2, 4, 1, Some(201)), [12]);
        assert_eq!(broken(3, 5, 1, Some(201)), [8, 9, 10]);
        assert_eq!(broken(4, 2, 0, Some(1)), [2, 5]);
        assert_eq!(broken(5, 4, 1, Some(3)), [5, 7]);
        assert_eq!(broken(5, 5, 0, Some(3)), [4, 6]);
        assert_eq!(broken(6, 3, 0, None), [7, 10, 12]);
        assert_eq!(broken(6, 4, 0, Some(201)), [10, 12]);
        let mut tables = state();
        tables[4] = table(&[&[1, 1, 2], &[1, 1, 4]]);
        assert!(State::new(tables).broken_conditions().contains(&(3, 1)));
    }
}
