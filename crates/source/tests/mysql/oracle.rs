//! Random transactions and schema changes over tables of every type.

use remora_peers::{Kind, Server};
use remora_source::mysql::TableState;

use crate::{followed::Followed, generator::Generator, random::Random, rounds};

/// Everything that commits while a copy runs and after it.
fn rows_and_searches_agree(kind: Kind) {
    let server = Server::start(kind, &[]).unwrap();
    let mut generator = Generator::new(&server, Random::seeded("oracle"));
    generator.fill(40);
    let followed = Followed::start(&server);
    for _ in 0..150 {
        generator.step(0);
    }
    followed.must_equal(&server, &mut generator, "after the copy");
    let status = followed.follower.status();
    let keyless = status.tables.iter().find(|table| table.table.ends_with("keyless")).unwrap();
    assert_eq!(keyless.state, TableState::Live);
    for round in 0..4 {
        for _ in 0..60 {
            generator.step(0);
        }
        followed.must_equal(&server, &mut generator, &format!("transactions, round {round}"));
    }
    generator.big_transaction(3_000);
    followed.must_equal(&server, &mut generator, "after a big transaction");
}

/// Schema changes in between, of every kind.
fn schema_changes_are_followed(kind: Kind) {
    let server = Server::start(kind, &[]).unwrap();
    let mut generator = Generator::new(&server, Random::seeded("schema changes"));
    generator.fill(16);
    let followed = Followed::start(&server);
    for round in 0..rounds(8) {
        for _ in 0..12 {
            generator.step(25);
        }
        followed.must_equal(&server, &mut generator, &format!("schema changes, round {round}"));
    }
}

/// What the binlog may hold in other forms.
fn other_forms_of_the_binlog(kind: Kind) {
    let options: &[&str] = match kind {
        Kind::MariaDb1011 | Kind::MariaDb118 => &[
            "--log-bin-compress=1",
            "--log-bin-compress-min-len=10",
            "--binlog-row-metadata=FULL",
            "--binlog-checksum=NONE",
        ],
        Kind::MySql97 => &[
            "--binlog-transaction-compression=ON",
            "--binlog-row-value-options=PARTIAL_JSON",
            "--binlog-row-metadata=FULL",
        ],
        Kind::MySql56 => &["--binlog-checksum=NONE", "--binlog-rows-query-log-events=1"],
    };
    let server = Server::start(kind, options).unwrap();
    let mut generator = Generator::new(&server, Random::seeded("other forms"));
    generator.fill(24);
    let followed = Followed::start(&server);
    for round in 0..3 {
        for _ in 0..60 {
            generator.step(4);
        }
        followed.must_equal(&server, &mut generator, &format!("other forms, round {round}"));
    }
}

/// Stops and crashes of the source, and of what follows it.
fn goes_on_after_restarts(kind: Kind) {
    let mut server = Server::start(kind, &[]).unwrap();
    let mut generator = Generator::new(&server, Random::seeded("restarts"));
    generator.fill(16);
    let mut followed = Followed::start(&server);
    for round in 0..4 {
        for _ in 0..30 {
            generator.step(3);
        }
        match round {
            0 => server.restart().unwrap(),
            1 => {
                server.kill().unwrap();
                server.restart().unwrap();
            }
            _ => followed = Followed::start_in(&server, followed.close()),
        }
        generator = Generator::attach(&server, generator.random.clone());
        for _ in 0..30 {
            generator.step(3);
        }
        followed.must_equal(&server, &mut generator, &format!("restarts, round {round}"));
    }
}

crate::for_every_kind!(
    rows_and_searches_agree,
    other_forms_of_the_binlog,
    schema_changes_are_followed,
    goes_on_after_restarts,
);
