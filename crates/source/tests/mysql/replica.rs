//! The oracle itself, against what is known to be right: a replica of the same server.

use std::{thread::sleep, time::Duration};

use mysql::prelude::Queryable;
use remora_peers::{Kind, Server, replicate};

use crate::{
    generator::{DATABASE, Generator},
    random::Random,
    rows,
};

/// Longest wait for the replica, in tenths of a second.
const PATIENCE: usize = 600;

fn executed(server: &Server) -> String {
    let variable = match server.kind().is_mariadb() {
        true => "@@gtid_current_pos",
        false => "@@GLOBAL.gtid_executed",
    };
    let mut connection = server.connect().unwrap();
    connection.query_first(format!("SELECT {variable}")).unwrap().unwrap()
}

fn holds_the_same(kind: Kind) {
    let source = Server::start(kind, &["--server-id=1"]).unwrap();
    let replica = Server::start(kind, &["--server-id=2"]).unwrap();
    replicate(&source, &replica).unwrap();
    let mut generator = Generator::new(&source, Random::seeded("replica"));
    generator.fill(20);
    for _ in 0..100 {
        generator.step(8);
    }
    println!("{} statements taken, {} refused", generator.taken, generator.refused);
    assert!(generator.taken > 10 * generator.refused);
    for tenths in 0.. {
        if executed(&replica) == executed(&source) {
            break;
        }
        assert!(tenths < PATIENCE, "the replica is at {}", executed(&replica));
        sleep(Duration::from_millis(100));
    }
    let theirs = rows::of_source(&mut source.connect().unwrap(), DATABASE, &|_, _| true);
    let ours = rows::of_source(&mut replica.connect().unwrap(), DATABASE, &|_, _| true);
    assert!(theirs.values().map(|table| table.rows.len()).sum::<usize>() > 50);
    if let Some(text) = rows::difference(&ours, &theirs) {
        panic!("{text}");
    }
}

crate::for_every_kind!(holds_the_same);
