//! What secondary keys cost where they are followed: the same rows in two databases of a MariaDB, with three keys for
//! each table and without any, followed one after the other by processes of their own.

use std::{ops::RangeInclusive, path::Path};

use anyhow::{Result, ensure};
use mysql::{Conn, OptsBuilder, prelude::Queryable};
use remora_peers::Server;

use super::{
    SCHEMA,
    load::{Share, definitions, fill},
    rows::{self, Shop, TableRows},
};
use crate::{
    replication::{
        backlog,
        remora::{Ending, Remora},
        report::{Figure, Report, Spread, Target},
        source,
    },
    server_group::start_source,
    suite::WorkDirectory,
};

/// The tables, the keys of each, and what an update of its rows assigns.
const TABLES: [(&str, [&str; 3], &str); 4] = [
    (
        "users",
        ["name", "country, created_at", "last_login_at"],
        "credits = credits + 1, last_login_at = created_at + INTERVAL id % 90 DAY",
    ),
    (
        "orders",
        ["user_id, created_at DESC", "status, created_at", "coupon"],
        "status = IF(status = 'paid', 'shipped', 'paid'), total = total + 1",
    ),
    (
        "order_items",
        ["order_id", "product_id, quantity", "price"],
        "quantity = quantity % 9 + 1, price = price + 1",
    ),
    (
        "reviews",
        ["product_id, created_at", "user_id", "rating, created_at"],
        "rating = rating % 5 + 1",
    ),
];
/// The databases with and without keys.
const WITH_KEYS: &str = "with_keys";
const WITHOUT_KEYS: &str = "without_keys";
/// The ids that an order has in `order_items`.
const IDS_OF_AN_ORDER: u64 = 3;
/// Rows of a transaction, by the numbers they are made of.
const NUMBERS: u64 = 10;
/// The share of the rows that are updated in each round.
const UPDATED: u64 = 10;
/// Starts after a stop, and after a crash.
const STARTS: usize = 3;
/// The most that keys may cost.
const AT_MOST: f64 = 1.1;
const AT_LEAST: f64 = 0.9;

/// What one process needed.
struct Costs {
    rows: u64,
    copy_s: f64,
    copy_cpu_s: f64,
    applied: backlog::Applied,
    /// The medians of the starts, in seconds.
    start_s: f64,
    recovery_s: f64,
    /// After everything was applied, and after the last start, in MiB.
    resident: f64,
    resident_at_start: f64,
}

/// Measures both databases in each round, in alternating order.
pub fn measure(program: &Path, shop: &Shop, rounds: usize, report: &mut Report) -> Result<()> {
    let server = start_source()?;
    for database in [WITH_KEYS, WITHOUT_KEYS] {
        eprintln!("filling {database}");
        load(&mut source::connect(&server, database)?, database == WITH_KEYS, shop)?;
    }
    let work = WorkDirectory::new()?;
    let mut all = Vec::new();
    for round in 0..rounds.max(1) {
        let follow = |database: &str| {
            eprintln!("round {}, {database}", round + 1);
            let directory = work.path().join(format!("{database}-{round}"));
            follow(&server, program, &directory, database, shop)
        };
        let (with, without) = match round % 2 {
            0 => {
                let with = follow(WITH_KEYS)?;
                (with, follow(WITHOUT_KEYS)?)
            }
            _ => {
                let without = follow(WITHOUT_KEYS)?;
                (follow(WITH_KEYS)?, without)
            }
        };
        all.push((with, without));
    }
    figures(&all).into_iter().for_each(|figure| report.add(figure));
    Ok(())
}

/// The rows that are followed.
fn tables() -> Vec<TableRows> {
    let is_followed = |table: &TableRows| TABLES.iter().any(|(name, ..)| *name == table.name);
    rows::TABLES.into_iter().filter(is_followed).collect()
}

/// The definition of a table of the shop without its keys, or with three of them.
fn definition(name: &str, keys: &[&str], has_keys: bool) -> String {
    let head = format!("CREATE TABLE {name} (");
    let whole = definitions(SCHEMA).find(|definition| definition.starts_with(&head));
    let is_key = |line: &str| {
        ["KEY ", "UNIQUE KEY ", "FULLTEXT KEY ", "CONSTRAINT "]
            .iter()
            .any(|it| line.starts_with(it))
    };
    let lines = whole.unwrap_or_default().lines().skip(1);
    let lines = lines.map(|line| line.trim().trim_end_matches(','));
    let mut lines: Vec<String> = lines.filter(|line| !is_key(line)).map(str::to_owned).collect();
    if has_keys {
        lines.extend(keys.iter().map(|columns| format!("KEY ({columns})")));
    }
    format!("{head}{}) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4", lines.join(", "))
}

fn load(connection: &mut Conn, has_keys: bool, shop: &Shop) -> Result<()> {
    for (name, keys, _) in TABLES {
        connection.query_drop(definition(name, &keys, has_keys))?;
    }
    fill(connection, &tables(), shop, Share::Most)
}

/// Follows a database: copies it, applies changes, and starts again several times.
fn follow(
    server: &Server,
    program: &Path,
    directory: &Path,
    database: &str,
    shop: &Shop,
) -> Result<Costs> {
    let mut connection = source::connect(server, database)?;
    let mut rows = 0;
    for (name, ..) in TABLES {
        let count: Option<u64> = connection.query_first(format!("SELECT COUNT(*) FROM {name}"))?;
        rows += count.unwrap_or_default();
    }
    let url = server.follower_url(database);
    let mut remora = Remora::start(program, directory, &url)?;
    remora.wait_until_live(TABLES.len())?;
    let copy_s = remora.started.elapsed().as_secs_f64();
    remora.settle()?;
    let copy_cpu_s = remora.processor().whole().unwrap_or_default().as_secs_f64();
    check_keys(&remora, database)?;
    let applied = backlog::apply(&mut remora, server, || change(server, database, shop))?;
    let resident = mebibytes(&remora)?;
    let mut restart = |ending| {
        let mut times = Vec::new();
        for _ in 0..STARTS {
            times.push(remora.restart(program, &url, ending)?.as_secs_f64());
            remora.settle()?;
        }
        Ok::<_, anyhow::Error>(Spread::of(times).median)
    };
    let (start_s, recovery_s) = (restart(Ending::Stop)?, restart(Ending::Kill)?);
    let resident_at_start = mebibytes(&remora)?;
    Ok(Costs {
        rows,
        copy_s,
        copy_cpu_s,
        applied,
        start_s,
        recovery_s,
        resident,
        resident_at_start,
    })
}

fn mebibytes(remora: &Remora) -> Result<f64> {
    Ok(remora.resident_bytes()? as f64 / f64::from(1 << 20))
}

/// Fails unless the followed tables have as many keys as the source's.
fn check_keys(remora: &Remora, database: &str) -> Result<()> {
    let options = OptsBuilder::new()
        .ip_or_hostname(Some("127.0.0.1"))
        .tcp_port(remora.sql_port)
        .prefer_socket(false)
        .user(Some("root"));
    let found: Option<usize> = Conn::new(options)?.query_first(format!(
        "SELECT COUNT(DISTINCT table_name, index_name) FROM information_schema.statistics
         WHERE table_schema = '{database}' AND index_name <> 'PRIMARY'"
    ))?;
    let wanted = if database == WITH_KEYS { 3 * TABLES.len() } else { 0 };
    ensure!(found == Some(wanted), "{found:?} keys of {database} are followed, not {wanted}");
    Ok(())
}

/// Inserts the rows that the copy did not have, updates others and deletes what was inserted, in short transactions.
fn change(server: &Server, database: &str, shop: &Shop) -> Result<()> {
    let mut connection = source::connect(server, database)?;
    for table in tables() {
        let count = (table.count)(shop);
        let loaded = count - count / 50;
        let updated = (count / UPDATED).max(NUMBERS);
        let ids = if table.name == "order_items" { IDS_OF_AN_ORDER } else { 1 };
        let assigned = TABLES.iter().find(|(name, ..)| *name == table.name);
        let assigned = assigned.map_or("", |(_, _, assigned)| assigned);
        let range = |from: u64| {
            let (first, last) = ((from - 1) * ids + 1, (from + NUMBERS - 1) * ids);
            format!("id BETWEEN {first} AND {last}")
        };
        let steps = |rows: RangeInclusive<u64>| rows.step_by(usize::try_from(NUMBERS).unwrap_or(1));
        for from in steps(loaded + 1..=count) {
            let mut sql = String::new();
            let numbers = from..=count.min(from + NUMBERS - 1);
            numbers.for_each(|number| (table.write)(shop, number, &mut sql));
            let rows = sql.strip_prefix(',').unwrap_or_default();
            connection.query_drop(format!("INSERT INTO {} VALUES {rows}", table.name))?;
        }
        for from in steps(1..=updated) {
            let filter = range(from);
            connection
                .query_drop(format!("UPDATE {} SET {assigned} WHERE {filter}", table.name))?;
        }
        for from in steps(loaded + 1..=count) {
            let filter = range(from);
            connection.query_drop(format!("DELETE FROM {} WHERE {filter}", table.name))?;
        }
    }
    Ok(())
}

fn figures(all: &[(Costs, Costs)]) -> Vec<Figure> {
    let ratio = |name: &str, unit: &str, of: fn(&Costs) -> f64, target| {
        let ratios = all.iter().map(|(with, without)| of(with) / of(without)).collect();
        let with = Spread::of(all.iter().map(|(with, _)| of(with)).collect()).median;
        let without = Spread::of(all.iter().map(|(_, without)| of(without)).collect()).median;
        let mut figure =
            Figure::new(&format!("three keys: {name}"), "x", Spread::of(ratios), target);
        figure.note = format!("{with:.3} {unit} with keys, {without:.3} without");
        figure
    };
    let (fast, cheap) = (Target::AtLeast(AT_LEAST), Target::AtMost(AT_MOST));
    vec![
        ratio("copy rate", "rows/s", |it| it.rows as f64 / it.copy_s, fast),
        ratio("CPU time of a copy", "s", |it| it.copy_cpu_s, Target::None),
        ratio(
            "apply rate",
            "changes/s",
            |it| it.applied.changes() as f64 / it.applied.wall_s(),
            fast,
        ),
        ratio("CPU time of applying", "s", |it| it.applied.cpu_s(), Target::None),
        ratio("start after a stop", "s", |it| it.start_s, cheap),
        ratio("start after a crash", "s", |it| it.recovery_s, cheap),
        ratio("memory after all changes", "MiB", |it| it.resident, cheap),
        ratio("memory after a start", "MiB", |it| it.resident_at_start, cheap),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_differ_by_their_keys_alone() {
        for (name, keys, _) in TABLES {
            let (with, without) = (definition(name, &keys, true), definition(name, &keys, false));
            assert_eq!(with.matches(", KEY (").count(), 3, "{with}");
            assert!(!without.contains(", KEY (") && !without.contains("FOREIGN"), "{without}");
            assert!(without.contains("id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, "));
            let columns = with.split(", KEY (").next().unwrap_or_default();
            assert!(without.starts_with(columns), "{with}\n{without}");
        }
        assert_eq!(tables().len(), TABLES.len());
    }
}
