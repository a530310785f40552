//! Killed at random moments, both sides: the follower in a process of its own, and the source.
//!
//! After every kill what is recovered must be some moment of the source, whole: an amount that
//! moved between two tables is in both or in neither. Then following goes on and must arrive at
//! exactly what the source has.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, sleep},
    time::Duration,
};

use mysql::prelude::Queryable;
use remora_engine::{Database, Options};
use remora_peers::{Kind, Server};
use remora_source::{Error, mysql::Follower};
use tempfile::TempDir;

use crate::{
    followed::{Followed, small_chunks},
    generator::Generator,
    random::Random,
    rounds, rows,
};

/// Set for the process that follows and is killed: the source's URL, and where to put its data.
const CHILD_URL: &str = "REMORA_TEST_FOLLOW";
const CHILD_DIRECTORY: &str = "REMORA_TEST_DIRECTORY";
/// What it says once it has applied something.
const APPLIED: &str = "something was applied";

/// What the process that is killed does. Without the variables, which is when the tests run, it
/// does nothing.
#[test]
fn child() {
    let (Ok(url), Ok(directory)) = (std::env::var(CHILD_URL), std::env::var(CHILD_DIRECTORY))
    else {
        return;
    };
    let engine = Database::open(directory.as_ref(), Options::default()).unwrap();
    // The source may be killed before following has begun, which is an error to its user.
    let _follower = loop {
        match Follower::start(engine.clone(), small_chunks(&url)) {
            Err(Error::Unreachable { .. }) => sleep(Duration::from_millis(50)),
            started => break started.unwrap(),
        }
    };
    // Who waits to kill it waits for something to be lost.
    while engine.position().0 == 0 {
        sleep(Duration::from_millis(1));
    }
    println!("{APPLIED}");
    // It ends with the test that started it, should that fail.
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
}

fn start_child(server: &Server, directory: &TempDir) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["crash::child", "--exact", "--nocapture"])
        .env(CHILD_URL, server.follower_url(crate::generator::DATABASE))
        .env(CHILD_DIRECTORY, directory.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Waits until the child has applied something.
fn wait_until_applied(child: &mut Child) {
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let said = lines.find(|line| line.as_ref().is_ok_and(|line| line.contains(APPLIED)));
    assert!(said.is_some(), "the child ended before it applied anything");
}

/// Writes until told to stop, through another connection after each that is lost.
fn write_on(mut generator: Generator, stop: &AtomicBool) -> Generator {
    while !stop.load(Ordering::Relaxed) && !generator.lost {
        generator.step(2);
    }
    generator
}

/// Whether the sum over both ledgers is zero, where both are here and neither waits for a copy that
/// replaces it: such a table is told as one that is copied, and is as old as its last good state.
fn assert_whole(directory: &TempDir) {
    let engine = Database::open(directory.path(), Options::default()).unwrap();
    assert!(engine.position().0 > 0, "what was applied before the kill is gone");
    let mut sum = 0_i64;
    let ledgers = ["shop.ledger_a", "shop.ledger_b"];
    if ledgers.iter().all(|name| engine.tables().iter().any(|table| table == name)) {
        for name in ledgers {
            let table = rows::table_of_engine(&engine, name);
            let place = table.columns.iter().position(|column| column == "amount").unwrap();
            for row in &table.rows {
                let text = String::from_utf8(row[place].clone().unwrap()).unwrap();
                sum += text.parse::<i64>().unwrap();
            }
        }
    }
    let positions = engine.source_positions();
    engine.close().unwrap();
    let of_ledgers: Vec<_> =
        positions.iter().filter(|(name, _)| name.contains("shop.ledger_")).collect();
    let is_stale = of_ledgers.iter().any(|(_, position)| *position == "stale");
    if is_stale {
        println!("a ledger waits for a copy; the sum is {sum}");
    } else {
        assert_eq!(sum, 0, "half a transaction was recovered: {of_ledgers:?}");
    }
}

/// MySQL 5.6 leaves half a table where it is killed while it makes one: a name that nobody can read.
fn drop_broken_tables(server: &Server) {
    let mut source = server.connect().unwrap();
    let broken = "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = ? \
                  AND TABLE_TYPE = 'BASE TABLE' AND ENGINE IS NULL";
    let names: Vec<String> = source.exec(broken, (crate::generator::DATABASE,)).unwrap();
    for name in names {
        let database = crate::generator::DATABASE;
        source.query_drop(format!("DROP TABLE IF EXISTS `{database}`.`{name}`")).unwrap();
    }
}

fn survives_kills_of_both_sides(kind: Kind) {
    let mut server = Server::start(kind, &[]).unwrap();
    let mut generator = Generator::new(&server, Random::seeded("crash"));
    generator.fill(24);
    let mut directory = TempDir::new().unwrap();
    for round in 0..rounds(3) {
        let stop = Arc::new(AtomicBool::new(false));
        let mut choices = Random::new(generator.random.next());
        let mut child = start_child(&server, &directory);
        let writer = {
            let stop = Arc::clone(&stop);
            thread::spawn(move || write_on(generator, &stop))
        };
        wait_until_applied(&mut child);
        sleep(Duration::from_millis(choices.below(2_000) as u64));
        if choices.chance(30) {
            server.kill().unwrap();
            server.restart().unwrap();
            drop_broken_tables(&server);
            sleep(Duration::from_millis(choices.below(1_000) as u64));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        stop.store(true, Ordering::Relaxed);
        generator = writer.join().unwrap();
        if generator.lost {
            let last = generator.history.pop().unwrap_or_default();
            generator = Generator::attach(&server, generator.random.clone());
            if last.starts_with("TRUNCATE") {
                // MariaDB that is killed in the middle of it may have emptied the table without an event in its
                // binlog, which no follower hears of (4 of 25 kills of a 10.11 that does nothing else).
                generator.again(&last);
            }
        }
        assert_whole(&directory);
        let followed = Followed::start_in(&server, directory);
        followed.must_equal(&server, &mut generator, &format!("kill {round}"));
        println!("kill {round}: {} statements", generator.taken);
        directory = followed.close();
    }
}

crate::for_every_kind!(survives_kills_of_both_sides);
