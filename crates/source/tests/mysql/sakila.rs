//! A shop that lends films, in the spirit of the Sakila sample database, and Sakila itself, whose
//! scripts are not part of this repository: `REMORA_SAKILA` names the directory of
//! `sakila-schema.sql.zst` and `sakila-data.sql.zst`, and the tests of it are ignored unless asked for.

use std::{fs::File, io::read_to_string, path::Path};

use mysql::{Conn, prelude::Queryable};
use remora_peers::{Kind, Server};

use crate::{followed::Followed, generator::DATABASE, random::Random};

/// Runs a script as the command-line client does: statements end with the delimiter at the end of a
/// line, and DELIMITER changes it.
fn run_script(connection: &mut Conn, script: &str) {
    let mut delimiter = ";".to_owned();
    let mut statement = String::new();
    for line in script.lines() {
        if let Some(next) = line.trim().strip_prefix("DELIMITER ") {
            delimiter = next.trim().to_owned();
            continue;
        }
        if statement.is_empty() && (line.trim().is_empty() || line.starts_with("--")) {
            continue;
        }
        statement.push_str(line);
        statement.push('\n');
        if let Some(whole) = statement.trim_end().strip_suffix(&*delimiter) {
            connection.query_drop(whole).unwrap_or_else(|error| panic!("{whole}: {error}"));
            statement.clear();
        }
    }
}

/// A day in the shop.
const A_DAY: [&str; 14] = [
    "START TRANSACTION",
    "CALL lend(3, 2)",
    "UPDATE rental SET returned = NOW() WHERE rental_id = 1",
    "UPDATE payment SET note = 'late: 2 days — 😀' WHERE rental_id = 1",
    "COMMIT",
    "UPDATE film SET title = 'Deeper Reef', fee = fee + 1.005 WHERE film_id = 1",
    "UPDATE film SET film_id = 4000 WHERE film_id = 4 AND NOT EXISTS
       (SELECT 1 FROM film_performer WHERE film_performer.film_id = 4)",
    "DELETE FROM film_performer WHERE film_id = 5",
    "DELETE FROM film WHERE film_id = 5",
    "UPDATE rental JOIN payment USING (rental_id) SET returned = lent, amount = amount + 0.5",
    "UPDATE customer SET picture = REPEAT(X'00FF', 200), name = CONCAT(name, ' jr.')",
    "DELETE rental, payment FROM rental JOIN payment USING (rental_id) WHERE rental.film_id = 2",
    "INSERT INTO performer (first_name, last_name) SELECT last_name, first_name FROM performer",
    "UPDATE address SET location = ST_GeomFromText('POINT(0 -0.5)'), phone = '000' LIMIT 2",
];

fn a_film_shop_is_followed(kind: Kind) {
    let server = Server::start(kind, &[]).unwrap();
    let mut random = Random::seeded("film shop");
    let mut connection = server.connect().unwrap();
    connection.query_drop(format!("CREATE DATABASE {DATABASE}")).unwrap();
    connection.query_drop(format!("USE {DATABASE}")).unwrap();
    run_script(&mut connection, include_str!("film_shop/schema.sql"));
    run_script(&mut connection, include_str!("film_shop/data.sql"));
    let followed = Followed::start(&server);
    followed.compare(&server, &mut random).unwrap();
    for statement in A_DAY {
        connection.query_drop(statement).unwrap_or_else(|error| panic!("{statement}: {error}"));
    }
    followed.compare(&server, &mut random).unwrap();
}

/// A day in Sakila's shops: its procedures' and triggers' work, keys of two columns, every type it has.
const A_DAY_IN_SAKILA: [&str; 10] = [
    "START TRANSACTION",
    "INSERT INTO rental (rental_date, inventory_id, customer_id, staff_id)
       SELECT NOW(), 10, 3, store_id FROM inventory WHERE inventory_id = 10",
    "INSERT INTO payment (customer_id, staff_id, rental_id, amount, payment_date)
       VALUES (3, 1, LAST_INSERT_ID(), 4.99, NOW())",
    "COMMIT",
    "UPDATE film SET title = 'ACADEMY DINOSAUR RETURNS', special_features = 'Trailers,Commentaries',
       rating = 'NC-17' WHERE film_id = 1",
    "UPDATE film SET rental_rate = rental_rate + 1.05, release_year = 2007 WHERE length > 150",
    "UPDATE film_actor SET film_id = 2 WHERE film_id = 1 AND actor_id NOT IN
       (SELECT actor_id FROM (SELECT actor_id FROM film_actor WHERE film_id = 2) AS there)",
    "DELETE FROM payment WHERE amount > 9",
    "UPDATE staff SET picture = REPEAT(X'89504E47FF00', 500), password = NULL WHERE staff_id = 2",
    "UPDATE customer SET active = 0, email = CONCAT(first_name, '@пример.example') WHERE store_id = 2",
];

/// Reads a script of Sakila's. Both name their database; the tests look at another.
fn sakila(name: &str) -> String {
    let directory = std::env::var("REMORA_SAKILA").expect("REMORA_SAKILA names Sakila's directory");
    let path = Path::new(&directory).join(name);
    let file = File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let script = read_to_string(zstd::Decoder::new(file).unwrap()).unwrap();
    [";", "."].iter().fold(script, |script, behind| {
        script.replace(&format!("sakila{behind}"), &format!("{DATABASE}{behind}"))
    })
}

fn sakila_is_followed(kind: Kind) {
    let server = Server::start(kind, &[]).unwrap();
    let mut connection = server.connect().unwrap();
    run_script(&mut connection, &sakila("sakila-schema.sql.zst"));
    let followed = Followed::start_with_many_rows(&server);
    run_script(&mut connection, &sakila("sakila-data.sql.zst"));
    let mut random = Random::seeded("Sakila");
    followed.compare(&server, &mut random).unwrap();
    // And by a copy instead of the binlog.
    let copied = Followed::start_with_many_rows(&server);
    copied.compare(&server, &mut random).unwrap();
    for statement in A_DAY_IN_SAKILA {
        connection.query_drop(statement).unwrap_or_else(|error| panic!("{statement}: {error}"));
    }
    for each in [followed, copied] {
        each.compare(&server, &mut random).unwrap();
        assert_eq!(each.engine.tables().len(), SAKILA_TABLES);
    }
}

/// Tables of Sakila; its views are none.
const SAKILA_TABLES: usize = 16;

crate::for_every_kind!(
    a_film_shop_is_followed,
    #[ignore = "needs Sakila's scripts, see REMORA_SAKILA"]
    sakila_is_followed,
);
