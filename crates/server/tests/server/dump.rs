//! Dumps of a running server: save, load, verify and schedule.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use crate::support::{Client, TestServer};

/// Waits until the last dump is done and returns its status.
fn finished(client: &mut Client) -> String {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let status = client.ask("DUMP STATUS");
        if !status.contains("status: SAVING") && !status.contains("status: LOADING") {
            return status;
        }
        assert!(Instant::now() < deadline, "{status}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_dump_is_whole_while_writes_go_on() {
    let server = TestServer::start("[durability]\nmode = 'none'\n");
    let mut writer = server.connect();
    for start in (0..4000).step_by(500) {
        let rows: Vec<String> = (start..start + 500)
            .map(|id| {
                format!("{{\"id\":{},\"title\":\"before\",\"body\":\"old text\"}}", id + 1000)
            })
            .collect();
        assert!(
            writer.ask(&format!("PUT articles [{}]", rows.join(","))).starts_with("OK PUT 500")
        );
    }
    let stop = Arc::new(AtomicBool::new(false));
    let stopping = Arc::clone(&stop);
    // Each write replaces two rows at once: a snapshot has both or neither.
    let writing = std::thread::spawn(move || {
        let mut writes = 0;
        while !stopping.load(Ordering::Relaxed) {
            let put = format!(
                "PUT articles [{{\"id\":1,\"title\":\"pair {writes}\",\"body\":\"\"}},\
                 {{\"id\":5000,\"title\":\"pair {writes}\",\"body\":\"\"}}]"
            );
            assert!(writer.ask(&put).starts_with("OK PUT 2 "));
            writes += 1;
        }
        writes
    });
    let mut client = server.connect();
    let started = client.ask("DUMP SAVE pairs.dmp");
    assert!(started.starts_with("OK DUMP_STARTED /") && started.ends_with("/dumps/pairs.dmp\r\n"));
    let status = finished(&mut client);
    assert!(status.contains("status: COMPLETED") && status.contains("pairs.dmp"), "{status}");
    stop.store(true, Ordering::Relaxed);
    assert!(writing.join().unwrap() > 0);
    assert!(client.ask("DUMP VERIFY pairs.dmp").starts_with("OK DUMP_VERIFIED /"));
    let info = client.ask("DUMP INFO pairs.dmp");
    assert!(info.contains("\r\ntables: 1\r\n") && info.ends_with("END\r\n"), "{info}");

    let loaded = client.ask("DUMP LOAD pairs.dmp");
    assert!(loaded.starts_with("OK LOADED /"), "{loaded}");
    let first = client.ask("GET articles 1 FIELDS title");
    let second = client.ask("GET articles 5000 FIELDS title");
    let title = |reply: &str| reply.lines().nth(2).unwrap().split_once('\t').unwrap().1.to_owned();
    if second.starts_with("OK") {
        assert_eq!(title(&first), title(&second));
    } else {
        assert_eq!(title(&first), "Mount Everest");
    }
    assert_eq!(client.ask("COUNT articles \"old text\""), "OK COUNT 4000\r\n");
}

#[test]
fn dump_paths_cannot_leave_the_directory() {
    let server = TestServer::start("");
    let mut client = server.connect();
    for file in ["../out.dmp", "/etc/passwd", "a/../../b"] {
        let reply = client.ask(&format!("DUMP SAVE {file}"));
        assert!(reply.starts_with("ERROR 2 ") && reply.contains("dump directory"), "{reply}");
    }
    assert!(client.ask("DUMP LOAD none.dmp").starts_with("ERROR 8 "));
    std::fs::create_dir_all(server.directory.path().join("dumps")).unwrap();
    std::fs::write(server.directory.path().join("dumps/bad.dmp"), "nonsense").unwrap();
    for command in ["VERIFY", "INFO", "LOAD"] {
        let reply = client.ask(&format!("DUMP {command} bad.dmp"));
        assert!(reply.starts_with("ERROR "), "{command}: {reply}");
    }
    assert_eq!(client.ask("COUNT articles city"), "OK COUNT 1\r\n");
}

#[test]
fn dump_restores_tables_in_an_empty_server() {
    let server = TestServer::start("");
    let mut client = server.connect();
    client.ask("DUMP SAVE all.dmp");
    assert!(finished(&mut client).contains("status: COMPLETED"));
    let file = server.directory.path().join("dumps/all.dmp");
    let other = TestServer::start_empty("");
    std::fs::create_dir_all(other.directory.path().join("dumps")).unwrap();
    std::fs::copy(file, other.directory.path().join("dumps/all.dmp")).unwrap();
    let mut other_client = other.connect();
    assert!(other_client.ask("DUMP LOAD all.dmp").starts_with("OK LOADED"));
    for request in ["COUNT articles the", "FACET articles kind", "GET articles 2 FIELDS *"] {
        assert_eq!(client.ask(request), other_client.ask(request));
    }
}

#[test]
fn automatic_dumps_are_retained_up_to_the_setting() {
    let server = TestServer::start("[dump]\ninterval_s = 1\nretain = 2\n");
    let folder = server.directory.path().join("dumps");
    let dumps = || -> Vec<String> {
        let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut names: Vec<String> = names.filter(|name| name.ends_with(".dmp")).collect();
        names.sort();
        names
    };
    let deadline = Instant::now() + Duration::from_secs(60);
    let mut seen = std::collections::BTreeSet::new();
    // A dump is a file for as long as it takes to see that it is one too many.
    while seen.len() < 5 {
        assert!(Instant::now() < deadline, "{seen:?}");
        seen.extend(dumps());
        std::thread::sleep(Duration::from_millis(100));
    }
    let status = finished(&mut server.connect());
    assert!(status.contains("status: COMPLETED"), "{status}");
    let newest: Vec<String> = seen.iter().rev().take(2).rev().cloned().collect();
    let kept = dumps();
    assert!(kept.len() == 2 && kept >= newest, "{kept:?} of {seen:?}");
}
