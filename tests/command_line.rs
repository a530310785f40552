//! The `remora` command as users see it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

#[path = "command_line/json.rs"]
mod json;
#[path = "command_line/servers.rs"]
mod servers;
#[path = "command_line/sql_tables.rs"]
mod sql_tables;

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::Path,
    process::{Child, Command, Output, Stdio},
    time::{Duration, Instant},
};

/// The most time of a clean stop.
const STOP: Duration = Duration::from_secs(5);

fn remora() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_remora"));
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command
}

fn run(arguments: &[&str]) -> Output {
    remora().args(arguments).output().unwrap()
}

/// The output of a command that must succeed.
fn printed(arguments: &[&str]) -> String {
    let output = run(arguments);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

/// The error output of a command that must fail.
fn refused(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert!(!output.status.success(), "{arguments:?} succeeded");
    String::from_utf8(output.stderr).unwrap()
}

/// A server process.
struct Serving {
    child: Child,
    address: String,
}

impl Serving {
    fn start(arguments: &[&str]) -> Self {
        let mut child = remora()
            .args(["serve", "--http", "", "--sql", ""])
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut line = || lines.next().expect("the server ended").unwrap();
        assert!(line().starts_with("remora "));
        let address = line().strip_prefix("line protocol: ").unwrap().to_owned();
        Self { child, address }
    }

    fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &pid]).status().unwrap().success());
    }

    fn ask(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.write_all(format!("{request}\r\n").as_bytes()).unwrap();
        let mut reply = Vec::new();
        while !reply.ends_with(b"\r\n") {
            let mut chunk = [0; 4096];
            let bytes = stream.read(&mut chunk).unwrap();
            assert!(bytes > 0);
            reply.extend_from_slice(&chunk[..bytes]);
        }
        String::from_utf8(reply).unwrap()
    }

    /// Sends SIGTERM and waits for a clean end.
    fn stop(mut self) {
        self.signal("TERM");
        let start = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(start.elapsed() < STOP, "still there after {STOP:?}");
            std::thread::sleep(Duration::from_millis(10));
        };
        assert!(status.success(), "{status}");
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn write(path: &Path, text: &str) -> String {
    std::fs::write(path, text).unwrap();
    path.display().to_string()
}

#[test]
fn a_source_that_cannot_be_followed_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data").display().to_string();
    let follow = |url: &str| {
        let listen = ["serve", "--http", "", "--sql", "", "--line", "127.0.0.1:0"];
        let own = [&listen[..], &["--data", &data, "--mysql"]].concat();
        refused(&[&own[..], &[url]].concat())
    };
    let error = follow("mysql://reader:p@127.0.0.1:1/shop");
    assert!(error.contains("cannot reach 127.0.0.1:1"), "{error}");
    assert!(follow("127.0.0.1:3306").contains("mysql://user:password@host"));
}

#[test]
fn the_demonstration_shows_searches() {
    let text = printed(&["demo", "--exit"]);
    assert!(text.contains("Loaded ") && text.contains("remora> SEARCH articles"), "{text}");
    assert!(text.contains(" us)") || text.contains(" ms)"), "{text}");
    assert!(!text.contains("ERROR"), "{text}");
    let directory = tempfile::tempdir().unwrap();
    let rivers = "name,note\nDanube,second longest river\nVolga,longest river\n";
    let file = write(&directory.path().join("rivers.csv"), rivers);
    let text = printed(&["demo", &file, "--exit"]);
    assert!(text.contains("Loaded 2 rows into the table 'rivers'"), "{text}");
    assert!(text.contains("SEARCH rivers longest") && !text.contains("ERROR"), "{text}");
}

#[test]
fn a_table_goes_in_and_out() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data").display().to_string();
    let rows = "{\"id\":1,\"title\":\"Danube\",\"text\":\"a river\"}\n\
                {\"id\":2,\"title\":\"Volga\",\"text\":\"a longer river\"}\n";
    let file = write(&directory.path().join("rivers.jsonl"), rows);
    let import = ["import", "--data", &data, "--table", "rivers", &file];
    assert!(printed(&import).contains("2 rows into table 'rivers'"));
    assert!(printed(&import).contains("0 rows into table 'rivers'"), "it was read before");
    let exported = printed(&["export", "--data", &data, "--table", "rivers"]);
    assert_eq!(exported.lines().count(), 2);
    assert!(exported.contains("\"title\":\"Danube\""), "{exported}");
    assert!(printed(&["check", &data]).contains("Everything is as it was written."));
    let count = printed(&["shell", "--data", &data, "-e", "COUNT rivers river"]);
    assert_eq!(count, "2 matches\n");
    let dump = directory.path().join("rivers.dump").display().to_string();
    assert!(printed(&["dump", "save", "--data", &data, &dump]).starts_with("2 rows into"));
    assert!(printed(&["dump", "info", &dump]).contains("rivers (2 rows)"));
    assert!(printed(&["dump", "verify", &dump]).contains("is whole: 2 rows"));
    let other = directory.path().join("other").display().to_string();
    assert!(printed(&["dump", "load", "--data", &other, &dump]).starts_with("2 rows into"));
    assert_eq!(printed(&["shell", "--data", &other, "-e", "COUNT rivers river"]), "2 matches\n");
}

#[test]
fn malformed_lines_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data").display().to_string();
    let rows = "{\"id\":1,\"text\":\"a\"}\n{\"id\":2,\n{\"id\":3,\"text\":\"b\"}\n";
    let file = write(&directory.path().join("rows.jsonl"), rows);
    let import = ["import", "--data", &data, "--table", "t", &file];
    let error = refused(&import);
    assert!(error.contains("rows.jsonl:2:"), "{error}");
    let skipping = [&import[..], &["--on-error", "skip"]].concat();
    let output = run(&skipping);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 skipped"), "{text}");
}

#[test]
fn a_server_takes_rows_serves_and_stops() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data").display().to_string();
    let rows: String = (0..3000)
        .map(|id| format!("{{\"id\":{id},\"title\":\"row {id}\",\"text\":\"some words\"}}\n"))
        .collect();
    let file = write(&directory.path().join("rows.jsonl"), &rows);
    let server = Serving::start(&["--data", &data, "--line", "127.0.0.1:0"]);
    let import = ["import", "--to", &server.address, "--table", "rows", &file];
    assert!(printed(&import).contains("3,000 rows into table 'rows'"));
    assert!(printed(&import).contains("0 rows into table 'rows'"), "it was read before");
    assert_eq!(server.ask("COUNT rows words"), "OK COUNT 3000\r\n");
    let shell = printed(&["shell", &server.address, "-e", "COUNT rows words"]);
    assert_eq!(shell, "3,000 matches\n");
    // An open connection does not keep the server from stopping.
    let _idle = TcpStream::connect(&server.address).unwrap();
    server.stop();
    let server = Serving::start(&["--data", &data, "--line", "127.0.0.1:0"]);
    assert_eq!(server.ask("COUNT rows words"), "OK COUNT 3000\r\n");
    server.stop();
}

#[test]
fn a_shell_asks_over_a_unix_socket() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let (socket, data) = (path("line.sock"), path("data"));
    let yaml = format!(
        "mysql: {{user: reader, database: shop}}\ntables:\n  - name: items\n    text_source: \
         {{column: body}}\nreplication: {{enable: false}}\napi: {{unix_socket: {{path: \
         '{socket}'}}, tcp: {{bind: 0.0.0.0}}}}\n"
    );
    let config = write(&directory.path().join("mygram.yaml"), &yaml);
    for _ in 0..2 {
        let server = Serving::start(&["-c", &config, "--data", &data]);
        // The socket replaces TCP.
        assert_eq!(server.address, socket);
        let mode = std::fs::metadata(&socket).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o770);
        let info = printed(&["shell", "--socket", &socket, "-e", "INFO"]);
        assert!(info.contains("version: MygramDB v1.10.0"), "{info}");
        let count =
            printed(&["shell", "-s", &socket, "-e", "COUNT items x", "-e", "COUNT items y"]);
        assert_eq!(count, "0 matches\n0 matches\n");
        let error = refused(&["serve", "-c", &config, "--data", &path("other")]);
        assert!(error.contains("another server listens"), "{error}");
        server.stop();
        assert!(!directory.path().join("line.sock").exists());
    }
    // A killed server leaves its socket behind; the next one replaces it.
    let server = Serving::start(&["-c", &config, "--data", &data]);
    server.signal("KILL");
    drop(server);
    assert!(directory.path().join("line.sock").exists());
    assert!(refused(&["shell", "--socket", &socket, "-e", "INFO"]).contains(&socket));
    Serving::start(&["-c", &config, "--data", &data]).stop();
}

#[test]
fn settings_are_read_again_by_sighup() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("remora.toml");
    let text = "data = 'data'\n[listen]\nline = '127.0.0.1:0'\n[limits]\ndefault_limit = 7\n";
    let file = write(&path, text);
    let server = Serving::start(&["-c", &file]);
    let limit = |server: &Serving| server.ask("CONFIG SHOW limits.default_limit");
    assert!(limit(&server).contains("limits.default_limit: 7"));
    write(&path, &text.replace("= 7", "= 9"));
    server.signal("HUP");
    let deadline = Instant::now() + Duration::from_secs(10);
    while !limit(&server).contains("limits.default_limit: 9") {
        assert!(Instant::now() < deadline, "{}", limit(&server));
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(server.ask("SET logging.level = debug, logging.format = json").starts_with("+OK 2"));
    write(&path, "nonsense = 1\n");
    server.signal("HUP");
    std::thread::sleep(Duration::from_millis(200));
    assert!(limit(&server).contains("limits.default_limit: 9"), "wrong settings change nothing");
    server.stop();
}

#[test]
fn mistakes_are_told_in_a_sentence() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("remora.toml");
    let file = write(&path, "[lissten]\n");
    let error = refused(&["serve", "-c", &file]);
    assert!(error.contains("line 1") && error.contains("did you mean 'listen'"), "{error}");
    let file = write(&path, "[listen]\nline = '0.0.0.0:11016'\n");
    assert!(refused(&["serve", "-c", &file, "--test"]).contains("auth.admin_token"));
    let nowhere = directory.path().join("nowhere").display().to_string();
    assert!(refused(&["check", &nowhere]).contains("is no data directory"));
    assert!(refused(&["shell", "127.0.0.1:1", "-e", "INFO"]).contains("remora serve"));
    assert!(refused(&["import", "--table", "t", "x"]).contains("--data"));
    let missing = refused(&["import", "--data", &nowhere, "--table", "t", "/no/such/file"]);
    assert!(missing.contains("/no/such/file"), "{missing}");
}

#[test]
fn a_directory_with_half_a_dump_is_neither_read_nor_written() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data").display().to_string();
    let file = write(&folder.path().join("rows.jsonl"), "{\"id\":1,\"title\":\"one\"}\n");
    let import = ["import", "--data", &data, "--table", "t", &file];
    printed(&import);
    std::fs::write(folder.path().join("data/half-loaded-dump"), "shop.dmp").unwrap();
    for arguments in [&import[..], &["export", "--data", &data, "--table", "t"]] {
        let said = refused(arguments);
        assert!(said.contains("dump load") && said.contains("shop.dmp"), "{said}");
    }
}

/// A folder with files of others does not become a data directory, and nothing in it changes.
#[test]
fn a_foreign_folder_is_refused_and_left_alone() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("photos");
    std::fs::create_dir_all(data.join("2024")).unwrap();
    write(&data.join("notes.txt"), "mine");
    std::fs::set_permissions(&data, std::fs::Permissions::from_mode(0o755)).unwrap();
    let seen = || {
        let names = std::fs::read_dir(&data).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<_> = names.collect();
        names.sort();
        (names, std::fs::metadata(&data).unwrap().permissions().mode())
    };
    let before = seen();
    let (path, file) = (data.display().to_string(), folder.path().join("rows.jsonl"));
    let file = write(&file, "{\"id\":1,\"title\":\"one\"}\n");
    for arguments in
        [&["serve", "--data", &path][..], &["import", "--data", &path, "--table", "t", &file]]
    {
        let said = refused(arguments);
        assert!(
            said.contains("is no data directory and holds other files, such as '2024'"),
            "{said}"
        );
        assert_eq!(seen(), before);
    }
    // What lies in the root of a file system, and hidden files, are no files of others.
    std::fs::remove_dir(data.join("2024")).unwrap();
    std::fs::rename(data.join("notes.txt"), data.join(".notes")).unwrap();
    std::fs::create_dir(data.join("lost+found")).unwrap();
    printed(&["import", "--data", &path, "--table", "t", &file]);
}

/// Starts a server, which runs until dropped; also returns what it prints after each of these words, in this order.
fn serving<const N: usize>(arguments: &[&str], words: [&str; N]) -> (Serving, [String; N]) {
    let mut child = remora()
        .arg("serve")
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let serving = Serving { child, address: String::new() };
    let found = words.map(|word| {
        let behind = |line: String| line.strip_prefix(word).map(str::to_owned);
        lines.by_ref().find_map(|line| behind(line.unwrap())).expect("the server ended")
    });
    (serving, found)
}

/// A sphinx.conf whose source `books` reads `books.csv` of the folder.
fn sphinx_conf(folder: &str) -> String {
    format!(
        "source books {{\n type = csvpipe\n csvpipe_command = cat {folder}/books.csv\n csvpipe_field_string = title\n \
         csvpipe_attr_uint = year\n}}\n\
         index books {{\n source = books\n path = {folder}/books\n morphology = stem_en\n}}\n\
         index notes {{\n type = rt\n path = {folder}/notes\n rt_field = note\n rt_attr_uint = kind\n rt_attr_json = j\n rt_attr_bool = b\n}}\n\
         index both {{\n type = distributed\n local = books\n}}\n\
         searchd {{\n listen = 127.0.0.1:0:mysql41\n listen = 127.0.0.1:0\n log = x\n}}\n"
    )
}

#[test]
fn a_sphinx_conf_is_loaded_and_served() {
    use mysql::prelude::Queryable;
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().display().to_string();
    let path = directory.path().join("sphinx.conf");
    let text = sphinx_conf(&folder);
    let conf = write(&path, &text);
    write(&directory.path().join("books.csv"), "1,\"Whales, large\",1851\n2,Emma,1815\n");
    let output = run(&["import", "-c", &conf]);
    let (told, errors) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{errors}");
    assert_eq!(
        told,
        "2 rows into table 'books'\ntable 'notes' is made, without rows\n\
         table 'both' is made, distributed over books, with 2 rows\n"
    );
    let (server, [sql, api]) = serving(&["-c", &conf], ["MySQL protocol: ", "SphinxAPI: "]);
    TcpStream::connect(&api).unwrap();
    let mut session = mysql::Conn::new(format!("mysql://root@{sql}").as_str()).unwrap();
    let dialect: Option<String> = session.query_first("SELECT @@sql_dialect").unwrap();
    assert_eq!(dialect.as_deref(), Some("sphinx"));
    let found: Vec<(u64, String, u32)> = session
        .query("SELECT id, title, year FROM books WHERE MATCH('whale') AND year > 1800")
        .unwrap();
    assert_eq!(found, [(1, "Whales, large".to_owned(), 1851)]);
    let weighed = "SELECT id, WEIGHT() FROM books WHERE MATCH('whale')";
    let one: Vec<(u64, i64)> = session.query(weighed).unwrap();
    let all: Vec<(u64, i64)> = session.query(weighed.replace("books", "`both`")).unwrap();
    assert!(one.len() == 1 && one == all, "{one:?}, {all:?}");
    session.query_drop("INSERT INTO notes (id, note) VALUES (7, 'a note')").unwrap();
    let found: Option<(u64, u32)> =
        session.query_first("SELECT id, kind FROM notes WHERE MATCH('note')").unwrap();
    assert_eq!(found, Some((7, 0)));
    // A table that differs from the configuration because of an ALTER is served as it is.
    session.query_drop("ALTER TABLE notes morphology='stem_en'").unwrap();
    drop(session);
    server.stop();
    serving(&["-c", &conf], ["SphinxAPI: "]).0.stop();
    write(&directory.path().join("books.csv"), "3,Walden,1854\n");
    assert_eq!(printed(&["import", "-c", &conf, "books"]), "1 row into table 'books'\n");
    write(&directory.path().join("books.csv"), "3,Walden,1854\n4\n");
    let error = refused(&["import", "-c", &conf, "books"]);
    assert!(error.contains("index 'books' stays as it was: source 'books': line 2"), "{error}");
    let data = format!("{folder}/remora");
    let exported = printed(&["export", "--data", &data, "--table", "books"]);
    assert_eq!(exported, "{\"id\":3,\"title\":\"Walden\",\"year\":1854}\n");
    assert!(refused(&["import", "-c", &conf, "nothing"]).contains("it has books, notes, both"));
    assert_eq!(
        printed(&["import", "-c", &conf, "both"]),
        "table 'both' is there, distributed over books, with 1 row\n"
    );
    for (from, to, message) in [
        ("127.0.0.1:0:", "0.0.0.0:9306:", "can be reached from other machines"),
        ("listen = 127.0.0.1:0\n", "listen = /run/searchd.sock\n", "is not spoken on Unix sockets"),
        ("rt_attr_json = j", "killlist_target = j", "sphinx.conf:17: killlist_target: "),
        ("morphology", "morfology", "sphinx.conf:10: 'morfology' is no key"),
    ] {
        let conf = write(&path, &text.replacen(from, to, 1));
        let error = refused(&["serve", "-c", &conf, "--test"]);
        assert!(error.contains(message), "{error} / {message}");
    }
}

#[test]
fn a_percolate_index_is_made_and_keeps_its_rules() {
    use mysql::prelude::Queryable;
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().display().to_string();
    let text = format!(
        "index alerts {{\n type = percolate\n path = {folder}/alerts\n rt_field = title\n rt_attr_uint = price\n \
         morphology = stem_en\n}}\n\
         searchd {{\n listen = 127.0.0.1:0:mysql41\n log = x\n}}\n"
    );
    let conf = write(&directory.path().join("sphinx.conf"), &text);
    assert_eq!(printed(&["import", "-c", &conf]), "table 'alerts' is made, without rows\n");
    let call = "CALL PQ('alerts', '[{\"title\": \"A whale\", \"price\": 40}, {\"title\": \"Emma\"}]', 1 AS docs)";
    let matched = vec![(1, "1".to_owned()), (2, "2".to_owned())];
    // The server keeps an existing table, and makes one where there is none.
    for (rules, matched) in [
        ("('whales', 'price < 50'), ('@title emma', '')", matched.clone()),
        ("('nothing', '')", matched),
        ("('nothing', '')", Vec::new()),
    ] {
        let (server, [sql]) = serving(&["-c", &conf], ["MySQL protocol: "]);
        let mut session = mysql::Conn::new(format!("mysql://root@{sql}").as_str()).unwrap();
        let insert = format!("INSERT INTO alerts (query, filters) VALUES {rules}");
        session.query_drop(insert).unwrap();
        let found: Vec<(u64, String)> = session.query(call).unwrap();
        assert_eq!(found, matched);
        if rules.contains("nothing") {
            session.query_drop("DROP TABLE alerts").unwrap();
        }
        drop(session);
        server.stop();
    }
    assert_eq!(
        printed(&["import", "-c", &conf, "alerts"]),
        "table 'alerts' is made, without rows\n"
    );
    assert_eq!(
        printed(&["import", "-c", &conf, "alerts"]),
        "table 'alerts' is there, with 0 rows\n"
    );
}

#[test]
fn a_load_that_is_ended_ends_its_commands() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().display().to_string();
    let text = format!(
        "source s {{\n type = tsvpipe\n tsvpipe_command = echo $$ > {folder}/pid; sleep 60; sleep 60\n \
         tsvpipe_field = t\n}}\nindex i {{\n source = s\n path = {folder}/i\n}}\n"
    );
    let conf = write(&directory.path().join("sphinx.conf"), &text);
    let child = remora().args(["import", "-c", &conf]).spawn().unwrap();
    let mut importing = Serving { child, address: String::new() };
    let deadline = Instant::now() + Duration::from_secs(30);
    let pid = loop {
        let pid = std::fs::read_to_string(directory.path().join("pid")).unwrap_or_default();
        if pid.ends_with('\n') {
            break pid.trim().to_owned();
        }
        assert!(Instant::now() < deadline, "the command does not start");
        std::thread::sleep(Duration::from_millis(10));
    };
    importing.signal("TERM");
    assert_eq!(importing.child.wait().unwrap().code(), Some(130));
    let is_there = || {
        // A zombie process has an empty command line.
        std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| !line.is_empty())
    };
    while is_there() {
        assert!(Instant::now() < deadline, "the command goes on");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn two_files_of_answers_are_compared() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, lines: &[&str]| write(&directory.path().join(name), &lines.concat());
    let coral = "{\"query\":\"coral\",\"total_found\":3,\"rows\":[[7,2500],[3,1500],[9,1500]]}\n";
    let reef = "{\"query\":\"reef | shark\",\"total_found\":2,\"rows\":[[3,1400],[8,1400]]}\n";
    let one = file("one.jsonl", &[coral, reef]);
    let four = file("four.jsonl", &[&coral.replace("9,1500", "4,1499"), reef]);
    let code = |first: &str, second: &str| {
        let output = run(&["compare", first, second]);
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    let table = "\
measure                  count  share
total results            2/2    100.00 %
total found              2/2    100.00 %
top 10                   1/2    50.00 %
doc set                  1/2    50.00 %
doc groups               0/1    0.00 %
order                    1/2    50.00 %
weights                  1/2    50.00 %
doc mismatch             1/5    20.00 %
max mismatch             1
median mismatch          1
queries that lack 1..10         1 0 0 0 0 0 0 0 0 0
";
    assert_eq!(code(&one, &four), (Some(1), table.to_owned(), String::new()));
    let (equal, told, _) = code(&one, &one);
    assert!(
        equal == Some(0) && told.contains("doc mismatch             0/5    0.00 %\n"),
        "{told}"
    );
    let short = file("short.jsonl", &[coral]);
    let (failed, told, error) = code(&one, &short);
    assert_eq!((failed, told.as_str()), (Some(2), ""));
    assert!(error.starts_with("remora: ") && error.contains("short.jsonl ends before "), "{error}");
    let (failed, _, error) = code("/no/such/file", &one);
    assert!(failed == Some(2) && error.contains("/no/such/file"), "{error}");
}
