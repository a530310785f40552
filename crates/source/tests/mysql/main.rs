//! Remora beside real servers: at the same GTID every row of every table equals a SELECT at the
//! source, and every search equals reading all its texts.
//!
//! `REMORA_SEED` repeats a run; `REMORA_ROUNDS` is how often the crash test kills (default: 3).

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

/// Each of these functions of a kind of server as a test per kind. With `by hand` they run with
/// `--ignored` only, for the reason given.
#[macro_export]
macro_rules! for_every_kind {
    (by hand $reason:literal: $($test:ident),* $(,)?) => {
        $crate::for_every_kind!(@ mariadb_10_11 MariaDb1011 (ignore = $reason) $($test)*);
        $crate::for_every_kind!(@ mariadb_11_8 MariaDb118 (ignore = $reason) $($test)*);
        $crate::for_every_kind!(@ mysql_9_7 MySql97 (ignore = $reason) $($test)*);
        $crate::for_every_kind!(@ mysql_5_6 MySql56 (ignore = $reason) $($test)*);
    };
    ($($test:ident),* $(,)?) => {
        $crate::for_every_kind!(@ mariadb_10_11 MariaDb1011 (cfg(test)) $($test)*);
        $crate::for_every_kind!(@ mariadb_11_8 MariaDb118 (cfg(test)) $($test)*);
        $crate::for_every_kind!(@ mysql_9_7 MySql97 (cfg(test)) $($test)*);
        $crate::for_every_kind!(@ mysql_5_6 MySql56 (cfg(test)) $($test)*);
    };
    (@ $name:ident $kind:ident $attribute:tt $($test:ident)*) => {
        mod $name {
            $($crate::for_every_kind!(# $attribute $kind $test);)*
        }
    };
    (# ($($attribute:tt)*) $kind:ident $test:ident) => {
        #[test]
        #[$($attribute)*]
        fn $test() {
            super::$test(remora_peers::Kind::$kind);
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
