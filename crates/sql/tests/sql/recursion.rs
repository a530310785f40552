//! Recursive common table expressions beside a loop that does the same: rows, their order, and which of them a LIMIT takes.

use std::collections::HashSet;

use crate::support::{Server, random::Random, rows, run};

/// Statements of each kind.
const STATEMENTS: usize = 150;

/// A query block that computes a row of each: `(x * times + plus) % modulus`.
#[derive(Clone, Copy, Debug)]
struct Step {
    times: u64,
    plus: u64,
    modulus: u64,
}

impl Step {
    fn random(random: &mut Random) -> Self {
        Self {
            times: random.below(3),
            plus: random.below(5),
            modulus: random.choose(&[2, 3, 7, 11]),
        }
    }

    fn of(self, x: u64) -> u64 {
        (x * self.times + self.plus) % self.modulus
    }
}

/// A recursion over numbers.
struct Numbers {
    first: Vec<u64>,
    steps: Vec<Step>,
    /// For each query block but the first, whether it is behind UNION DISTINCT.
    distinct: Vec<bool>,
    /// The depth at which it ends; without one, rows have no depth.
    depth: Option<u64>,
    window: Option<(usize, usize)>,
}

impl Numbers {
    fn random(random: &mut Random) -> Self {
        let first: Vec<u64> = (0..=random.below(3)).map(|_| random.below(4)).collect();
        let steps: Vec<Step> = (0..=random.below(3)).map(|_| Step::random(random)).collect();
        let is_distinct = random.below(2) == 0;
        let mut distinct: Vec<bool> = (1..first.len()).map(|_| random.below(2) == 0).collect();
        distinct.extend(steps.iter().map(|_| is_distinct && random.below(2) == 0));
        // DISTINCT may not come before ALL in query blocks that are recursive.
        if let Some(last) = distinct.last_mut() {
            *last = is_distinct;
        }
        let depth = (!is_distinct || random.below(2) == 0).then(|| random.below(6));
        let window =
            (random.below(2) == 0).then(|| (random.below(4) as usize, random.below(12) as usize));
        Self { first, steps, distinct, depth, window }
    }

    fn statement(&self) -> String {
        let first = self.first.iter().map(|x| match self.depth {
            Some(_) => format!("SELECT {x} AS x, 0 AS d"),
            None => format!("SELECT {x} AS x"),
        });
        let steps = self.steps.iter().map(|Step { times, plus, modulus }| match self.depth {
            Some(depth) => {
                format!("SELECT (x * {times} + {plus}) % {modulus}, d + 1 FROM r WHERE d < {depth}")
            }
            None => format!("SELECT (x * {times} + {plus}) % {modulus} FROM r"),
        });
        let kinds = self.distinct.iter().map(|distinct| match distinct {
            true => " UNION DISTINCT ",
            false => " UNION ALL ",
        });
        let blocks = std::iter::once("").chain(kinds).zip(first.chain(steps));
        let blocks: String = blocks.map(|(kind, block)| format!("{kind}{block}")).collect();
        let window = self.window.map(|(offset, limit)| format!(" LIMIT {limit} OFFSET {offset}"));
        format!("WITH RECURSIVE r AS ({blocks}{}) SELECT * FROM r", window.unwrap_or_default())
    }

    /// The rows in MySQL's order: each query block reads on until there is nothing left.
    fn rows(&self) -> String {
        let last_distinct = self.distinct.iter().rposition(|distinct| *distinct);
        let is_distinct = last_distinct == Some(self.distinct.len() - 1);
        let mut rows: Vec<(u64, u64)> = Vec::new();
        for (index, x) in self.first.iter().enumerate() {
            // All blocks up to the last DISTINCT are distinct.
            let is_united = last_distinct.is_some_and(|last| index <= last + 1);
            if !is_united || !rows.contains(&(*x, 0)) {
                rows.push((*x, 0));
            }
        }
        let mut places = vec![0; self.steps.len()];
        while places.iter().any(|place| *place < rows.len()) {
            for (place, step) in places.iter_mut().zip(&self.steps) {
                while let Some((x, d)) = rows.get(*place).copied() {
                    *place += 1;
                    let next = (step.of(x), self.depth.map_or(0, |_| d + 1));
                    let is_deep = self.depth.is_some_and(|depth| d >= depth);
                    let is_known = is_distinct && rows.contains(&next);
                    if !is_deep && !is_known {
                        rows.push(next);
                    }
                }
            }
        }
        let (offset, limit) = self.window.unwrap_or((0, usize::MAX));
        let shown = rows.iter().skip(offset).take(limit).map(|(x, d)| match self.depth {
            Some(_) => format!("{x}|{d}"),
            None => x.to_string(),
        });
        shown.collect::<Vec<_>>().join("\n")
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn recursions_give_the_rows_of_a_loop_in_its_order() {
    let server = Server::new();
    let mut session = server.session();
    let mut random = Random::seeded();
    for _ in 0..STATEMENTS {
        let numbers = Numbers::random(&mut random);
        let statement = numbers.statement();
        assert_eq!(rows(&mut session, &statement).await, numbers.rows(), "{statement}");
    }
}

/// The nodes that can be reached, by edges forwards or in both directions.
fn reached(edges: &[(u64, u64)], from: u64, both: bool) -> Vec<u64> {
    let (mut found, mut rest) = (HashSet::from([from]), vec![from]);
    while let Some(node) = rest.pop() {
        for (a, b) in edges {
            let next = match (*a == node, *b == node) {
                (true, _) => *b,
                (_, true) if both => *a,
                _ => continue,
            };
            if found.insert(next) {
                rest.push(next);
            }
        }
    }
    let mut found: Vec<u64> = found.into_iter().collect();
    found.sort_unstable();
    found
}

/// How many paths of each length there are.
fn paths(edges: &[(u64, u64)], from: u64, most: usize) -> Vec<usize> {
    let mut ends = vec![from];
    let mut counts = vec![1];
    for _ in 0..most {
        let next = ends.iter().flat_map(|end| edges.iter().filter(move |(a, _)| a == end));
        ends = next.map(|(_, b)| *b).collect();
        counts.push(ends.len());
    }
    counts.retain(|count| *count > 0);
    counts
}

fn lines<T: ToString>(of: &[T]) -> String {
    of.iter().map(T::to_string).collect::<Vec<_>>().join("\n")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn recursions_walk_through_graphs() {
    let mut random = Random::seeded();
    // With and without the optimizer.
    for server in [Server::new(), Server::optimizing()] {
        let mut session = server.session();
        run(&mut session, "CREATE TABLE e (id INT PRIMARY KEY, a INT, b INT, KEY (a))")
            .await
            .unwrap();
        for _ in 0..STATEMENTS / 5 {
            let nodes = 2 + random.below(7);
            let edges: Vec<(u64, u64)> = (0..1 + random.below(12))
                .map(|_| (random.below(nodes), random.below(nodes)))
                .collect();
            let values = edges.iter().enumerate().map(|(id, (a, b))| format!("({id}, {a}, {b})"));
            let values = values.collect::<Vec<_>>().join(", ");
            run(&mut session, "TRUNCATE e").await.unwrap();
            run(&mut session, &format!("INSERT INTO e VALUES {values}")).await.unwrap();
            let from = random.below(nodes);
            let forwards = "SELECT e.b FROM r JOIN e ON e.a = r.x";
            for (further, both) in [
                (forwards.to_owned(), false),
                (format!("{forwards} UNION SELECT e.a FROM e, r WHERE e.b = r.x"), true),
                (format!("SELECT e.a FROM e JOIN r ON e.b = r.x UNION {forwards}"), true),
            ] {
                let statement = format!(
                    "WITH RECURSIVE r AS (SELECT {from} AS x UNION {further}) SELECT x FROM r ORDER BY x"
                );
                let answer = rows(&mut session, &statement).await;
                assert_eq!(answer, lines(&reached(&edges, from, both)), "{statement}: {values}");
            }
            let most = random.below(4) as usize;
            let statement = format!(
                "WITH RECURSIVE r AS (SELECT {from} AS x, 0 AS d UNION ALL \
                 SELECT e.b, d + 1 FROM r JOIN e ON e.a = r.x WHERE d < {most}) \
                 SELECT COUNT(*) FROM r GROUP BY d ORDER BY d"
            );
            let answer = rows(&mut session, &statement).await;
            assert_eq!(answer, lines(&paths(&edges, from, most)), "{statement}: {values}");
        }
    }
}

/// Each of its rounds gives one row, which the next block reads after thousands of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_for_another_block_take_the_memory_of_their_values() {
    let server = Server::new();
    let mut session = server.session();
    run(&mut session, "SET cte_max_recursion_depth = 9000").await.unwrap();
    let statement = "WITH RECURSIVE r AS (SELECT 1 AS i, 'text of some length' AS a, 'b' AS b UNION ALL \
                     SELECT i + 1, CONCAT('text of some length', i), HEX(i) FROM r WHERE i < 8000 \
                     UNION ALL SELECT i + 100000, a, b FROM r WHERE i < 8001) \
                     SELECT COUNT(*), SUM(i), COUNT(DISTINCT a) FROM r";
    assert_eq!(rows(&mut session, statement).await, "16000|864008000|8000");
}
