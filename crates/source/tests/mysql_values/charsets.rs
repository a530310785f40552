//! Every character of every character set, through a column of that set.

use mysql::{Conn, prelude::Queryable};
use remora_peers::{Kind, Server};

use super::{check as compare, execute, follow::Followed, table};

pub fn check(server: &Server, connection: &mut Conn, kind: Kind) {
    let mut followed = Followed::start(server);
    let charsets: Vec<String> = connection
        .query("SELECT CHARACTER_SET_NAME FROM information_schema.CHARACTER_SETS")
        .unwrap();
    // A page of the code space to a row; what the set lacks becomes a question mark.
    let pages: Vec<String> = (0..0x1_10000_u32 / 256)
        .filter(|page| *page < 0x300 || page % 64 == 5)
        .map(|page| (0..256).filter_map(|low| char::from_u32(page << 8 | low)).collect())
        .collect();
    execute(connection, "CREATE TABLE pages (id INT PRIMARY KEY, v TEXT CHARACTER SET utf8mb4)");
    for (id, page) in pages.iter().enumerate() {
        let digits: String = page.bytes().map(|byte| format!("{byte:02x}")).collect();
        execute(connection, &format!("INSERT INTO pages VALUES ({id}, _utf8mb4 x'{digits}')"));
    }
    for charset in charsets.iter().filter(|name| *name != "binary") {
        let name = format!("in_{charset}");
        execute(
            connection,
            &format!("CREATE TABLE {name} (id INT PRIMARY KEY, v TEXT CHARACTER SET {charset})"),
        );
        execute(connection, &format!("INSERT INTO {name} SELECT id, v FROM pages"));
        followed.add(table(connection, &name));
    }
    followed.until_end(connection);
    compare(connection, &followed, kind.name());
}
