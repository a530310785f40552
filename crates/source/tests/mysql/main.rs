//! Remora beside real servers: at the same GTID every row of every table equals a SELECT at the
//! source, and every search equals reading all its texts.
//!
//! `REMORA_SEED` repeats a run; `REMORA_ROUNDS` is how often the crash test kills, and how often
//! tables are changed and compared.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

/// Each of these functions of a kind of server as a test per kind.
#[macro_export]
macro_rules! for_every_kind {
    ($($(#[$attribute:meta])* $test:ident),* $(,)?) => {
        $crate::for_every_kind!(@ mariadb_10_11 MariaDb1011 $($(#[$attribute])* $test)*);
        $crate::for_every_kind!(@ mariadb_11_8 MariaDb118 $($(#[$attribute])* $test)*);
        $crate::for_every_kind!(@ mysql_9_7 MySql97 $($(#[$attribute])* $test)*);
        $crate::for_every_kind!(@ mysql_5_6 MySql56 $($(#[$attribute])* $test)*);
    };
    (@ $name:ident $kind:ident $($(#[$attribute:meta])* $test:ident)*) => {
        mod $name {
            $(
                #[test]
                $(#[$attribute])*
                fn $test() {
                    super::$test(remora_peers::Kind::$kind);
                }
            )*
        }
    };
}

mod crash;
mod followed;
mod generator;
mod oracle;
mod random;
mod replica;
mod rows;
mod sakila;
mod searches;

/// How many rounds a test takes if nobody says otherwise.
fn rounds(usual: usize) -> usize {
    std::env::var("REMORA_ROUNDS").map_or(usual, |text| text.parse().expect("a number"))
}
