//! Who comes in, and how.

use mysql_common::constants::CapabilityFlags as Capabilities;

use crate::{
    client::{Client, Entry, USUAL},
    connect,
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
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mysql/tls");
    TestServer::start_empty(&format!(
        "[sql]\ntls_cert = '{folder}/cert.pem'\ntls_key = '{folder}/key.pem'\n{USERS}"
    ))
}

/// The user that the server took the client for, or the error's number.
fn come_in(server: &TestServer, entry: &Entry) -> Result<String, u16> {
    match Client::connect(server.sql_address(), entry) {
        Ok(mut client) => Ok(client.query("SELECT USER()").value().to_owned()),
        Err(answer) => Err(answer.error()),
    }
}

#[test]
fn without_users_whoever_is_on_this_machine_comes_in() {
    let server = TestServer::start_empty("");
    let mut client = connect(&server);
    assert!(client.version.starts_with("8.4.0-remora-"), "{}", client.version);
    assert_eq!(client.query("SELECT 1").value(), "1");
    for native in [false, true] {
        let entry = Entry { native, ..entry("anyone", "anything") };
        assert_eq!(come_in(&server, &entry).unwrap(), "anyone@127.0.0.1");
    }
}

#[test]
fn passwords_are_proved_in_both_ways() {
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
fn a_stored_sha2_hash_needs_a_safe_channel_once() {
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
        Err(crate::client::Answer::Error(refusal)) => (refusal.state, refusal.message),
        _ => panic!("it came in"),
    };
    let (state, message_with) = message(&entry("nobody", "x"));
    assert_eq!(state, "28000");
    assert_eq!(message_with, "Access denied for user 'nobody'@'127.0.0.1' (using password: YES)");
    assert!(message(&entry("plain", "")).1.ends_with("(using password: NO)"));
}

#[test]
fn local_sockets_are_safe_and_named_localhost() {
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
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mysql/tls");
    let server = TestServer::start_empty(&format!(
        "[sql]\nrequire_tls = true\ntls_cert = '{folder}/cert.pem'\ntls_key = '{folder}/key.pem'\n"
    ));
    assert_eq!(come_in(&server, &entry("a", "")), Err(3159));
    assert!(come_in(&server, &tls(entry("a", ""))).is_ok());
}

#[test]
fn a_database_is_chosen_by_the_login() {
    let server = TestServer::start_empty("");
    let wrong = Entry { database: Some("nosuch"), ..Entry::default() };
    assert_eq!(come_in(&server, &wrong), Err(1049));
    let right = Entry { database: Some("remora"), ..Entry::default() };
    let mut client = Client::connect(server.sql_address(), &right).unwrap();
    assert_eq!(client.query("SELECT DATABASE()").value(), "remora");
}

#[test]
fn a_login_brings_its_collation() {
    let server = TestServer::start_empty("");
    // The test's clients come with utf8mb4_general_ci.
    let mut client = connect(&server);
    assert_eq!(client.query("SELECT @@collation_connection").value(), "utf8mb4_general_ci");
}

#[test]
fn users_change_and_sessions_begin_anew() {
    let server = server_with_users();
    let mut client = Client::connect(server.sql_address(), &entry("plain", "geheim")).unwrap();
    let user = |client: &mut Client| client.query("SELECT USER()").value().to_owned();
    for name in ["native", "plain"] {
        let changed = client.change_user(name, "geheim", "remora");
        assert_eq!(changed, crate::client::Answer::Ok { affected: 0 });
        assert_eq!(user(&mut client), format!("{name}@127.0.0.1"));
    }
    client.query("SET autocommit = 0");
    assert_eq!(client.status() & 2, 0);
    client.command(0x1F, b"");
    assert_eq!(client.status() & 2, 2);
    assert_eq!(user(&mut client), "plain@127.0.0.1");
    assert_eq!(client.change_user("native", "falsch", "").error(), 1045);
    assert_eq!(client.query("SELECT 1"), crate::client::Answer::Closed);
}

#[test]
fn compressed_connections_say_the_same() {
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
