//! Logins: accounts, authentication methods, TLS and failures.

use mysql_common::constants::CapabilityFlags as Capabilities;

use crate::{
    mysql::{
        client::{Client, Entry, USUAL},
        connect,
    },
    support::TestServer,
};

const CERTIFICATE: &str = include_str!("tls/cert.pem");

/// Accounts whose password is `geheim`, as MySQL 9.7 and 5.7 store it.
const USERS: &str = r#"
[[users]]
name = "plain"
password = "geheim"
[[users]]
name = "native"
password_native = "*462366917EEDD1970A48E87D8EF59EB67D2CA26F"
[[users]]
name = "sha2"
password_sha2 = "0x244124303041247E214F464943753A6D344F6030795C394C716F31326E65395143426A6F43676C636C2E584950484B6A4A376C6D543851304B683534397A6476357068416743"
[[users]]
name = "empty"
password = ""
[[users]]
name = "elsewhere"
host = "10.0.0.0/8"
password = "geheim"
"#;

fn entry(user: &'static str, password: &'static str) -> Entry {
    Entry { user, password, ..Entry::default() }
}

fn tls(entry: Entry) -> Entry {
    Entry { certificate: Some(CERTIFICATE), ..entry }
}

fn server_with_users() -> TestServer {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/server/mysql/tls");
    TestServer::start_empty(&format!(
        "[sql]\ntls_cert = '{folder}/cert.pem'\ntls_key = '{folder}/key.pem'\n{USERS}"
    ))
}

/// The user of the session, or the error number.
fn come_in(server: &TestServer, entry: &Entry) -> Result<String, u16> {
    match Client::connect(server.sql_address(), entry) {
        Ok(mut client) => Ok(client.query("SELECT USER()").value().to_owned()),
        Err(answer) => Err(answer.error()),
    }
}

#[test]
fn local_clients_need_no_login_without_users() {
    let server = TestServer::start_empty("");
    let mut client = connect(&server);
    assert!(client.version.starts_with("8.4.13-remora-"), "{}", client.version);
    assert_eq!(client.query("SELECT 1").value(), "1");
    for native in [false, true] {
        let entry = Entry { native, ..entry("anyone", "anything") };
        assert_eq!(come_in(&server, &entry).unwrap(), "anyone@127.0.0.1");
    }
}

#[test]
fn passwords_are_verified_by_both_plugins() {
    let server = server_with_users();
    for native in [false, true] {
        for user in ["plain", "native"] {
            let right = Entry { native, ..entry(user, "geheim") };
            assert_eq!(come_in(&server, &right).unwrap(), format!("{user}@127.0.0.1"));
            assert_eq!(come_in(&server, &tls(right)).unwrap(), format!("{user}@127.0.0.1"));
            for wrong in ["Geheim", ""] {
                assert_eq!(come_in(&server, &Entry { native, ..entry(user, wrong) }), Err(1045));
            }
        }
        assert!(come_in(&server, &Entry { native, ..entry("empty", "") }).is_ok());
        assert_eq!(come_in(&server, &Entry { native, ..entry("empty", "x") }), Err(1045));
        for stranger in ["nobody", "elsewhere", ""] {
            for password in ["geheim", ""] {
                let stranger = Entry { native, ..entry(stranger, password) };
                assert_eq!(come_in(&server, &stranger), Err(1045));
            }
        }
    }
}

#[test]
fn stored_sha2_hash_needs_one_secure_login() {
    let server = server_with_users();
    let right = entry("sha2", "geheim");
    assert_eq!(come_in(&server, &right), Err(1045));
    assert_eq!(come_in(&server, &tls(entry("sha2", "falsch"))), Err(1045));
    assert_eq!(come_in(&server, &right), Err(1045));
    assert!(come_in(&server, &tls(right.clone())).is_ok());
    assert!(come_in(&server, &right).is_ok());
    assert!(come_in(&server, &Entry { native: true, ..right }).is_ok());
    assert_eq!(come_in(&server, &entry("sha2", "falsch")), Err(1045));
}

#[test]
fn an_error_names_the_user_and_whether_there_was_a_password() {
    let server = server_with_users();
    let message = |entry: &Entry| match Client::connect(server.sql_address(), entry) {
        Err(crate::mysql::client::Answer::Error(refusal)) => (refusal.state, refusal.message),
        _ => panic!("it came in"),
    };
    let (state, message_with) = message(&entry("nobody", "x"));
    assert_eq!(state, "28000");
    assert_eq!(message_with, "Access denied for user 'nobody'@'127.0.0.1' (using password: YES)");
    assert!(message(&entry("plain", "")).1.ends_with("(using password: NO)"));
}

#[test]
fn unix_sockets_count_as_secure_and_as_localhost() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sock");
    let toml = format!("[listen]\nsql_socket = '{}'\n{USERS}", path.display());
    let server = TestServer::start_empty(&toml);
    let mut client = Client::connect_local(&path, &entry("sha2", "geheim")).unwrap();
    assert_eq!(client.query("SELECT USER()").value(), "sha2@localhost");
    server.stop();
    assert!(!path.exists());
}

#[test]
fn tls_can_be_required_and_is_refused_where_it_is_not_offered() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/server/mysql/tls");
    let server = TestServer::start_empty(&format!(
        "[sql]\nrequire_tls = true\ntls_cert = '{folder}/cert.pem'\ntls_key = '{folder}/key.pem'\n"
    ));
    assert_eq!(come_in(&server, &entry("a", "")), Err(3159));
    assert!(come_in(&server, &tls(entry("a", ""))).is_ok());
}

#[test]
fn login_selects_the_database() {
    let server = TestServer::start_empty("");
    let wrong = Entry { database: Some("nosuch"), ..Entry::default() };
    assert_eq!(come_in(&server, &wrong), Err(1049));
    let right = Entry { database: Some("remora"), ..Entry::default() };
    let mut client = Client::connect(server.sql_address(), &right).unwrap();
    assert_eq!(client.query("SELECT DATABASE()").value(), "remora");
}

#[test]
fn login_sets_the_collation() {
    let server = TestServer::start_empty("");
    // The test's clients come with utf8mb4_general_ci.
    let mut client = connect(&server);
    assert_eq!(client.query("SELECT @@collation_connection").value(), "utf8mb4_general_ci");
}

#[test]
fn change_user_resets_the_session() {
    let server = server_with_users();
    let mut client = Client::connect(server.sql_address(), &entry("plain", "geheim")).unwrap();
    let user = |client: &mut Client| client.query("SELECT USER()").value().to_owned();
    for name in ["native", "plain"] {
        let changed = client.change_user(name, "geheim", "remora");
        assert_eq!(changed, crate::mysql::client::Answer::Ok { affected: 0 });
        assert_eq!(user(&mut client), format!("{name}@127.0.0.1"));
    }
    client.query("SET autocommit = 0");
    assert_eq!(client.status() & 2, 0);
    client.command(0x1F, b"");
    assert_eq!(client.status() & 2, 2);
    assert_eq!(user(&mut client), "plain@127.0.0.1");
    assert_eq!(client.change_user("native", "falsch", "").error(), 1045);
    assert_eq!(client.query("SELECT 1"), crate::mysql::client::Answer::Closed);
}

#[test]
fn compressed_connections_give_equal_answers() {
    let server = TestServer::start_empty("");
    for kind in [Capabilities::CLIENT_COMPRESS, Capabilities::CLIENT_ZSTD_COMPRESSION_ALGORITHM] {
        let entry = Entry { capabilities: USUAL | kind, ..Entry::default() };
        let mut client = Client::connect(server.sql_address(), &entry).unwrap();
        for length in [1, 1000, 3_000_000] {
            let text = format!("SELECT LENGTH('{}')", "a".repeat(length));
            assert_eq!(client.query(&text).value(), length.to_string());
        }
        assert_eq!(client.command(0x12, b"").error(), 1047);
        assert_eq!(client.query("SELECT 7").value(), "7");
    }
}

#[test]
fn client_with_unknown_plugin_is_switched_to_a_known_one() {
    // MariaDB's clients name the first where a thread could not load what it wanted.
    for (name, asked) in [
        ("dummy_fallback_auth", "mysql_native_password"),
        ("client_ed25519", "mysql_native_password"),
        ("sha256_password", "caching_sha2_password"),
        ("", "mysql_native_password"),
    ] {
        for server in [TestServer::start_empty(""), server_with_users()] {
            for user in ["empty", "plain"] {
                let password = if user == "plain" { "geheim" } else { "" };
                let entry = Entry { plugin: Some(name), ..entry(user, password) };
                let mut client = Client::connect(server.sql_address(), &entry).unwrap();
                assert_eq!(client.switches, [asked], "{name}");
                assert_eq!(client.query("SELECT 1").value(), "1");
            }
        }
        let wrong = Entry { plugin: Some(name), ..entry("plain", "falsch") };
        assert_eq!(come_in(&server_with_users(), &wrong), Err(1045));
    }
}

#[test]
fn password_plugin_does_not_reveal_whether_a_user_exists() {
    let hash = "password_native = '*462366917EEDD1970A48E87D8EF59EB67D2CA26F'";
    let server = TestServer::start_empty(&format!("[[users]]\nname = 'native'\n{hash}\n"));
    for name in ["native", "nobody", "root"] {
        let entry = entry(name, "falsch");
        let mut client = Client::greeted(server.sql_address()).unwrap();
        let refused = client.log_in(&entry).unwrap_err();
        assert_eq!(
            (refused.error(), &client.switches[..]),
            (1045, &["mysql_native_password".to_owned()][..])
        );
    }
    let sha2 = USERS.lines().find(|line| line.starts_with("password_sha2")).unwrap();
    let server = TestServer::start_empty(&format!("[[users]]\nname = 'sha2'\n{sha2}\n"));
    let message =
        |name: &'static str| match Client::connect(server.sql_address(), &entry(name, "x")) {
            Err(crate::mysql::client::Answer::Error(refusal)) => {
                refusal.message.replace(&format!("'{name}'"), "NAME")
            }
            _ => panic!("it came in"),
        };
    assert_eq!(message("sha2"), message("nobody"));
}

#[test]
fn token_is_the_password_of_any_user_without_users() {
    let server = TestServer::start_empty("[auth]\nadmin_token = 's3cret'\n");
    for native in [false, true] {
        assert!(come_in(&server, &Entry { native, ..entry("anyone", "s3cret") }).is_ok());
        for wrong in ["", "secret"] {
            assert_eq!(come_in(&server, &Entry { native, ..entry("anyone", wrong) }), Err(1045));
        }
    }
}

#[test]
fn failed_logins_are_delayed() {
    let server = server_with_users();
    let start = std::time::Instant::now();
    for _ in 0..28 {
        assert_eq!(come_in(&server, &entry("plain", "x")), Err(1045));
    }
    assert!(start.elapsed() > std::time::Duration::from_secs(1), "{:?}", start.elapsed());
    let all = std::thread::scope(|scope| {
        let one = || come_in(&server, &entry("plain", "geheim")).err();
        let threads: Vec<_> = (0..20).map(|_| scope.spawn(one)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    assert!(all.iter().filter(|refused| **refused == Some(1129)).count() >= 10, "{all:?}");
    assert!(all.iter().all(|refused| refused.is_none_or(|number| number == 1129)), "{all:?}");
}

#[test]
fn session_shows_its_encryption() {
    let server = server_with_users();
    let status = |client: &mut Client, name: &str| match client
        .query(&format!("SHOW SESSION STATUS LIKE '{name}'"))
    {
        crate::mysql::client::Answer::Rows(rows) => rows[0][1].clone().unwrap(),
        other => panic!("{other:?}"),
    };
    let mut plain = Client::connect(server.sql_address(), &entry("plain", "geheim")).unwrap();
    assert_eq!(status(&mut plain, "Ssl_cipher"), "");
    assert_eq!(status(&mut plain, "Ssl_version"), "");
    let mut safe = Client::connect(server.sql_address(), &tls(entry("plain", "geheim"))).unwrap();
    for _ in 0..2 {
        assert_eq!(status(&mut safe, "Ssl_version"), "TLSv1.3");
        assert!(status(&mut safe, "Ssl_cipher").starts_with("TLS_"));
        // It stays so where the session begins anew.
        safe.command(0x1F, b"");
    }
}

#[test]
fn data_files_are_private() {
    use std::os::unix::fs::PermissionsExt;
    let server = TestServer::start("");
    assert!(server.server().owner().ask("OPTIMIZE").starts_with("OK OPTIMIZED"));
    let mut waiting = vec![server.directory.path().join("data")];
    let mut seen = 0;
    while let Some(path) = waiting.pop() {
        let metadata = std::fs::metadata(&path).unwrap();
        let mode = metadata.permissions().mode() & 0o777;
        let most = if metadata.is_dir() { 0o750 } else { 0o640 };
        assert_eq!(mode & !most, 0, "{} is {mode:o}", path.display());
        seen += 1;
        if metadata.is_dir() {
            waiting.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
    }
    assert!(seen > 5, "{seen}");
}

#[test]
fn mygramdb_token_makes_sql_read_only() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("mygram.yaml");
    let yaml = "mysql: {user: reader, database: shop}\ntables:\n  - name: items\n    \
                text_source: {column: body}\nnetwork: {allow_cidrs: [127.0.0.0/8]}\n\
                api: {admin_token: s3cret}\n";
    std::fs::write(&path, yaml).unwrap();
    let server = TestServer::start_with(&path, directory);
    let mut client = connect(&server);
    assert_eq!(client.query("SELECT 1").value(), "1");
    assert_eq!(client.query("CREATE DATABASE x").error(), 1044);
    assert_eq!(client.query("CREATE TABLE remora.t (id INT PRIMARY KEY)").error(), 1142);
}

/// A listener and a user have the dialect in which their sessions begin, also after a reset.
#[test]
fn sessions_begin_in_the_dialect_of_their_listener_or_user() {
    let server = TestServer::start_empty(
        "[listen]\nsphinx = '127.0.0.1:0'\n[[users]]\nname = 'plain'\npassword = 'x'\n\
         [[users]]\nname = 'searcher'\npassword = 'x'\ndialect = 'sphinx'\n\
         [[users]]\nname = 'owner'\npassword = 'x'\ndialect = 'mysql'\n",
    );
    let (usual, of_sphinx) = (server.sql_address(), server.sphinx_sql_address());
    let dialect = |client: &mut Client| client.query("SELECT @@sql_dialect").value().to_owned();
    for (address, user, expected) in [
        (usual, "plain", "mysql"),
        (usual, "searcher", "sphinx"),
        (usual, "owner", "mysql"),
        (of_sphinx, "plain", "sphinx"),
        (of_sphinx, "searcher", "sphinx"),
        (of_sphinx, "owner", "sphinx"),
    ] {
        let mut client = Client::connect(address, &entry(user, "x")).unwrap();
        assert_eq!(dialect(&mut client), expected, "{user}");
        let other = if expected == "mysql" { "sphinx" } else { "mysql" };
        client.query(&format!("SET sql_dialect = '{other}'"));
        assert_eq!(dialect(&mut client), other, "{user}");
        const RESET_CONNECTION: u8 = 0x1f;
        client.command(RESET_CONNECTION, b"");
        assert_eq!(dialect(&mut client), expected, "{user}");
    }
    let mut client = Client::connect(usual, &entry("plain", "x")).unwrap();
    for (user, expected) in [("searcher", "sphinx"), ("plain", "mysql"), ("owner", "mysql")] {
        client.change_user(user, "x", "");
        assert_eq!(dialect(&mut client), expected, "{user}");
    }
}
