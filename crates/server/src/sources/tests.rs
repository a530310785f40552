//! Replication sources as the protocols report them, tested with a fake source.

use std::{
    sync::Arc,
    thread,
    time::{Duration, SystemTime},
};

use remora_engine::{Change, ChangeBatch, Database, TableChanges, Value};
use remora_source::mysql::{Copied, State, TableState};

use super::{FollowedSource, fake::running};
use crate::{line::LocalSession, settings::Settings, shared::ServerState};

const GTIDS: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5";

fn copying() -> TableState {
    TableState::Copying { rows: 50, estimated: 200, rows_per_second: 25, seconds_left: 6 }
}

/// A session of a server that follows `d.live`, copies `d.new` and cannot follow `d.bad`.
struct Following {
    _directory: tempfile::TempDir,
    shared: Arc<ServerState>,
    status: Arc<parking_lot::Mutex<remora_source::mysql::FollowerStatus>>,
}

impl Following {
    fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let settings = Settings { data: directory.path().into(), ..Settings::default() };
        let settings = settings.finish().unwrap();
        let database = Database::open(directory.path(), settings.engine_options()).unwrap();
        let shared = Arc::new(ServerState::new(settings, database, None));
        let source = running(
            GTIDS,
            &[
                ("d.live", TableState::Live),
                ("d.new", copying()),
                ("d.bad", TableState::Refused("it has no key".to_owned())),
            ],
        );
        let status = Arc::clone(&source.status);
        shared
            .sources
            .set(vec![FollowedSource { name: "mysql".to_owned(), source: Box::new(source) }]);
        let this = Self { _directory: directory, shared, status };
        let definition = r#"{"name":"d.live","primary_key":["id"],"columns":[{"name":"id","type":"int64"},
            {"name":"body","type":"text"}],"texts":[{"columns":["body"]}]}"#;
        let create = format!("CREATE TABLE d.live {}", definition.replace('\n', ""));
        assert_eq!(this.ask(&create), "OK CREATED d.live");
        let put = format!("PUT d.live FROM [\"mysql\",\"{GTIDS}\"] {{\"id\":1,\"body\":\"x y\"}}");
        assert!(this.ask(&put).starts_with("ERROR 7 Table 'd.live' follows the source 'mysql'"));
        let row = Change::Put(vec![Value::Int(1), Value::Text("x y".into())]);
        let tables = vec![TableChanges { table: "d.live".into(), changes: vec![row] }];
        let positions = vec![("mysql".to_owned(), GTIDS.to_owned())];
        this.shared.database.apply(ChangeBatch { tables, positions }).unwrap();
        this
    }

    fn session(&self) -> LocalSession {
        LocalSession::of(Arc::clone(&self.shared))
    }

    fn ask(&self, request: &str) -> String {
        self.session().ask(request)
    }
}

/// Commands may use blocking sections, which need a multi-threaded runtime.
fn on_runtime(test: impl FnOnce()) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async { test() });
}

#[test]
fn table_in_its_first_copy_is_not_visible() {
    on_runtime(|| {
        let server = Following::start();
        let waits = "ERROR 6029 Table 'd.new' is synchronizing, please try again later".to_owned();
        for request in ["SEARCH d.new x", "COUNT new x", "GET d.new 1", "FACET d.new id"] {
            assert_eq!(server.ask(request), waits, "{request}");
        }
        assert_eq!(server.ask("COUNT d.other x"), "ERROR 4007 Table not found: d.other");
        let refused = server.ask("COUNT d.bad x");
        let why = "ERROR 4007 Table not found: d.bad ('d.bad' is refused: it has no key)";
        assert_eq!(refused, why);
        assert_eq!(server.ask("COUNT live x"), "OK COUNT 1");
        // A table that is copied again serves its current rows.
        server.status.lock().tables[0].state = copying();
        assert_eq!(server.ask("COUNT d.live x"), "OK COUNT 1");
    });
}

#[test]
fn replication_state_is_reported() {
    on_runtime(|| {
        let server = Following::start();
        let status = server.ask("REPLICATION STATUS");
        for line in [
            "status: running",
            &format!("current_gtid: {GTIDS}"),
            "processed_events: 10",
            "queue_size: 7",
            "schema_incompatible: false",
            "last_error: ",
            "source mysql: 127.0.0.1:3306 state=running uuid=u lag_seconds=0.500 \
             lag_transactions=3",
            "table d.live: live",
            "table d.new: copying 50/200 rows (25%) 25 rows/s 6 s left",
            "table d.bad: refused: it has no key",
        ] {
            assert!(status.lines().any(|shown| shown == line), "{line} in {status}");
        }
        let info = server.ask("INFO");
        for line in [
            "replication_status: running",
            "replication_inserts_applied: 4",
            "replication_updates_modified: 1",
            "replication_deletes_applied: 2",
            "replication_ddl_executed: 1",
            "replication_events_skipped_other_tables: 5",
            "readiness: not_ready",
            "data_initialized: false",
        ] {
            assert!(info.lines().any(|shown| shown == line), "{line} in {info}");
        }
        server.status.lock().tables[1].state = TableState::Refused(String::new());
        assert!(server.ask("INFO").contains("readiness: ready\r\n"));
        let error = (2012, "SCHEMA_INCOMPATIBLE: column 'x' changed".to_owned());
        let mut status = server.status.lock();
        (status.last_error, status.state) = (Some(error), State::Failed("x".to_owned()));
        drop(status);
        let status = server.ask("REPLICATION STATUS");
        assert!(status.contains("status: failed\r\n") && status.contains("last_error_code: 2012"));
        assert!(status.contains("schema_incompatible: true\r\n"), "{status}");
        assert!(server.ask("INFO").contains("readiness: not_ready\r\n"));
    });
}

#[test]
fn replication_stop_and_start() {
    on_runtime(|| {
        let server = Following::start();
        assert_eq!(server.ask("REPLICATION START"), "ERROR 9 Replication is already running");
        assert_eq!(server.ask("REPLICATION STOP"), "OK REPLICATION_STOPPED");
        assert_eq!(server.ask("REPLICATION STOP"), "ERROR 6029 Replication is not running");
        assert!(server.ask("REPLICATION STATUS").contains("status: stopped\r\n"));
        let why = "following is stopped";
        server.status.lock().tables[0].state = TableState::Paused { why, copying: false };
        server.status.lock().tables[1].state = TableState::Paused { why, copying: true };
        let status = server.ask("REPLICATION STATUS");
        for line in [
            "table d.live: paused: following is stopped\r\n",
            "table d.new: paused: following is stopped; its copy goes on afterwards\r\n",
        ] {
            assert!(status.contains(line), "{status}");
        }
        assert!(server.ask("COUNT d.new x").contains("is synchronizing"));
        assert!(server.ask("SYNC STATUS").contains("table=d.new status=FAILED error=\"paused"));
        assert_eq!(server.ask("COUNT d.live x"), "OK COUNT 1");
        assert_eq!(server.ask("REPLICATION START"), "OK REPLICATION_STARTED");
        assert!(server.ask("REPLICATION STATUS").contains("status: running\r\n"));
    });
}

#[test]
fn sync_is_started_reported_and_cancelled() {
    on_runtime(|| {
        let server = Following::start();
        let running = "ERROR 4011 SYNC already in progress for table 'd.new'";
        assert_eq!(server.ask("SYNC new"), running);
        assert_eq!(server.ask("SYNC d.none"), "ERROR 4007 Table not found: d.none");
        assert_eq!(server.ask("SYNC live"), "OK SYNC STARTED table=d.live");
        let status = server.ask("SYNC STATUS");
        assert!(status.contains("table=d.live status=STARTING\r\n"), "{status}");
        let copying = "table=d.new status=IN_PROGRESS progress=50/200 rows (25.0%) rate=25 rows/s";
        assert!(status.contains(copying), "{status}");
        assert!(status.contains("table=d.bad status=FAILED error=\"it has no key\""), "{status}");
        let at = SystemTime::UNIX_EPOCH + Duration::from_millis(1_795_000_000_250);
        let copied = Copied { times: 2, at, took: Duration::from_millis(300), rows: 1 };
        let mut tables = server.status.lock();
        (tables.tables[0].state, tables.tables[0].copied) = (TableState::Live, Some(copied));
        drop(tables);
        let status = server.ask("SYNC STATUS");
        let completed = format!(
            "table=d.live status=COMPLETED rows=1 time=0.3s gtid={GTIDS} replication=running \
             finished=1795000000.250 copies=2\r\n"
        );
        assert!(status.contains(&completed), "{status}");
        let stopped = "OK SYNC CANCELLATION REQUESTED table=d.new";
        assert_eq!(server.ask("SYNC STOP d.new"), stopped);
        let none = "ERROR 8 No active SYNC operations to stop";
        assert_eq!(server.ask("SYNC STOP"), none);
        assert_eq!(server.ask("SYNC STOP d.new"), none);
    });
}

#[test]
fn a_reader_waits_for_transactions() {
    on_runtime(|| {
        let server = Following::start();
        let waited = format!("OK WAITED {GTIDS}");
        assert_eq!(server.ask(&format!("WAIT {GTIDS}")), waited);
        let later = GTIDS.replace("1-5", "1-9");
        let late = "ERROR 10 These transactions were not applied within 100ms";
        assert_eq!(server.ask(&format!("WAIT {later} 0.1")), late);
        assert!(server.ask("WAIT nonsense").starts_with("ERROR 2 "));
        assert!(server.ask(&format!("WAIT {GTIDS} 4000")).starts_with("ERROR 3000 "));
        let status = Arc::clone(&server.status);
        let source = thread::spawn(move || {
            thread::sleep(Duration::from_millis(200));
            status.lock().applied = later;
        });
        let later = GTIDS.replace("1-5", "1-9");
        assert_eq!(server.ask(&format!("WAIT {later} 20")), waited);
        source.join().unwrap();
    });
}

#[test]
fn replies_have_the_position_if_requested() {
    on_runtime(|| {
        let server = Following::start();
        let mut session = server.session();
        assert_eq!(session.ask("COUNT d.live x"), "OK COUNT 1");
        assert_eq!(session.ask("POSITION ON"), "OK POSITION_ON");
        let position = format!("# POSITION {GTIDS}\r\n");
        assert_eq!(session.ask("COUNT d.live x"), format!("OK COUNT 1\r\n{position}"));
        assert_eq!(session.ask("SEARCH d.live x"), format!("OK RESULTS 1 1\r\n{position}"));
        assert_eq!(session.ask("GET d.live 1"), format!("OK DOC 1\r\n{position}"));
        let facet = session.ask("FACET d.live id");
        assert_eq!(facet, format!("OK FACET 1 1\r\n1\t1\r\n{position}"));
        let fields = session.ask("SEARCH d.live x FIELDS id CURSOR");
        let lines: Vec<&str> = fields.lines().collect();
        assert_eq!(lines[..3], ["OK RESULTS 1", "_key\tid", "1\t1"]);
        assert!(lines[3].starts_with("# CURSOR ") && lines[4] == position.trim_end(), "{fields}");
        session.ask("DEBUG ON");
        let debug = session.ask("COUNT d.live x");
        assert!(debug.starts_with(&format!("OK COUNT 1\r\n{position}\r\n# DEBUG\r\n")), "{debug}");
        session.ask("DEBUG OFF");
        assert_eq!(session.ask("POSITION OFF"), "OK POSITION_OFF");
        assert_eq!(session.ask("COUNT d.live x"), "OK COUNT 1");
        server.shared.settings.rcu(|settings| {
            let mut settings = (**settings).clone();
            (settings.cache.enabled, settings.cache.min_query_cost_ms) = (true, 0.0);
            settings
        });
        session.ask("POSITION ON");
        for _ in 0..2 {
            assert_eq!(session.ask("COUNT d.live x"), format!("OK COUNT 1\r\n{position}"));
        }
    });
}
