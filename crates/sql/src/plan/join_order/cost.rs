//! What an order of joins costs, in rows read.

use super::inputs::JoinInputs;

/// What the look-up of a key costs, compared with reading a row of a scan.
const OF_LOOKUP: f64 = 4.0;
/// What a row in a hash table costs.
const OF_BUILT: f64 = 2.0;
/// What a row that a join returns costs.
const OF_JOINED: f64 = 1.0;
/// The share of a table's rows that conditions cost, where they leave fewer of them.
const OF_CONDITIONS: f64 = 0.02;
/// The share of rows that satisfy a condition on several tables.
const OF_CONDITION: f64 = 0.5;

/// The costs of the orders of some relations.
pub(super) struct Costs<'r> {
    relations: &'r JoinInputs,
    /// With more keys of the joined relations, a further one is read whole.
    most_keys: f64,
}

/// What a further relation costs and gives.
#[derive(Clone, Copy)]
struct Step {
    cost: f64,
    rows: f64,
}

impl<'r> Costs<'r> {
    pub(super) fn new(relations: &'r JoinInputs, most_keys: usize) -> Self {
        Self { relations, most_keys: most_keys as f64 }
    }

    /// The best order; `None` if it costs more than this share of the order that the relations have.
    pub(super) fn best_order(&self, worthwhile: f64) -> Option<Vec<usize>> {
        let written: Vec<usize> = (0..self.count()).collect();
        let most = self.cost(&written) * worthwhile;
        let orders = (0..self.count()).map(|first| self.greedy(first));
        let best = orders.min_by(|a, b| a.0.total_cmp(&b.0))?;
        (best.0 < most).then_some(best.1)
    }

    fn count(&self) -> usize {
        self.relations.inputs.len()
    }

    /// The cost of an order.
    fn cost(&self, order: &[usize]) -> f64 {
        let Some((&first, others)) = order.split_first() else { return 0.0 };
        let Step { mut cost, mut rows } = self.first(first);
        let mut joined = 1 << first;
        for &next in others {
            let step = self.step(joined, rows, next);
            (cost, rows, joined) = (cost + step.cost, step.rows, joined | 1 << next);
        }
        cost
    }

    /// The order that begins with a relation and always takes the cheapest next one, with its cost.
    fn greedy(&self, first: usize) -> (f64, Vec<usize>) {
        let Step { mut cost, mut rows } = self.first(first);
        let (mut joined, mut order) = (1u64 << first, vec![first]);
        while order.len() < self.count() {
            let others = (0..self.count()).filter(|next| joined >> next & 1 == 0);
            let steps = others.map(|next| (next, self.step(joined, rows, next)));
            // Every row that is joined is joined again with all tables that follow.
            let weight = |step: &Step| step.cost + step.rows * OF_BUILT;
            let Some((next, step)) = steps.min_by(|a, b| weight(&a.1).total_cmp(&weight(&b.1)))
            else {
                break;
            };
            order.push(next);
            (cost, rows, joined) = (cost + step.cost, step.rows, joined | 1 << next);
        }
        (cost, order)
    }

    fn first(&self, first: usize) -> Step {
        let rows = self.relations.inputs.get(first).map_or(0.0, |input| input.rows);
        Step { cost: self.scan(first), rows }
    }

    /// What reading a relation costs.
    fn scan(&self, of: usize) -> f64 {
        let input = self.relations.inputs.get(of);
        input.map_or(0.0, |input| input.rows + (input.table_rows - input.rows) * OF_CONDITIONS)
    }

    /// Joins `rows` of the joined relations with a further one. A small side's keys are looked up in the other.
    fn step(&self, joined: u64, rows: f64, next: usize) -> Step {
        let Some(input) = self.relations.inputs.get(next) else { return Step { cost: 0.0, rows } };
        let (mut read, mut shares) = (self.scan(next), Vec::new());
        for values in &self.relations.equal {
            let before = values.of.iter().filter(|value| joined >> value.relation & 1 == 1);
            let before = before.map(|value| value.distinct).min_by(f64::total_cmp);
            let of_next = values.of.iter().filter(|value| value.relation == next);
            let of_next = of_next.min_by(|a, b| a.distinct.total_cmp(&b.distinct));
            let (Some(before), Some(value)) = (before, of_next) else { continue };
            shares.push(1.0 / value.distinct.max(before));
            let keys = rows.min(before);
            if value.is_indexed && keys <= self.most_keys {
                let found = keys * input.table_rows / value.distinct;
                read = read.min(keys * OF_LOOKUP + found);
            }
        }
        // Columns depend on each other, so each further equality counts for less.
        shares.sort_by(f64::total_cmp);
        let mut power = 1.0;
        let mut joined_rows = rows * input.rows;
        for share in shares {
            joined_rows *= share.powf(power);
            power /= 2.0;
        }
        let all = joined | 1 << next;
        let new = |reads: u64| reads & !all == 0 && reads & !joined != 0;
        let conditions = self.relations.conditions.iter().filter(|it| new(it.reads)).count();
        joined_rows *= OF_CONDITION.powi(i32::try_from(conditions).unwrap_or(i32::MAX));
        let built = rows.min(read) * OF_BUILT;
        Step { cost: read + built + joined_rows * OF_JOINED, rows: joined_rows }
    }
}
