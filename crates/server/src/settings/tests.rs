//! Settings files and the resulting settings.

use std::path::Path;

use remora_engine::{ColumnType, Durability, Filter, Literal, Width};

use super::*;

fn toml(text: &str) -> Result<Settings> {
    Settings::parse(Path::new("/etc/remora.toml"), text)?.finish()
}

fn yaml(text: &str) -> Result<Settings> {
    Settings::parse(Path::new("/etc/mygram.yaml"), text)?.finish()
}

fn message(result: Result<Settings>) -> String {
    result.err().map(|error| error.to_string()).unwrap_or_default()
}

const TABLE: &str = "mysql: {user: reader, database: shop}\ntables:\n  - name: items\n    \
                     text_source: {column: body}\n    filters: [{name: status, type: int}]\n";

#[test]
fn toml_maps_onto_settings() {
    let settings = toml(
        r#"
        data = "data"
        [listen]
        line = "127.0.0.1:0"
        [tables.articles]
        primary_key = ["id"]
        columns = [
            { name = "id", type = "uint64" },
            { name = "title", type = "text", indexed = true },
            { name = "body", type = "text" },
            { name = "year", type = "int32" },
        ]
        [[tables.articles.texts]]
        columns = ["title", "body"]
        ngram_size = 1
        width = "narrow"
        fold_accents = true
        [limits]
        default_limit = 7
        [durability]
        mode = "interval"
        interval_ms = 50
        "#,
    )
    .unwrap();
    assert_eq!(settings.data, Path::new("/etc/data"));
    assert_eq!(settings.dump.dir, Path::new("/etc/data/dumps"));
    assert_eq!(settings.limits.default_limit, 7);
    assert_eq!(settings.durability, Durability::Interval(Duration::from_millis(50)));
    let schema = &settings.tables[0];
    assert_eq!((schema.name.as_str(), &schema.primary_key[..]), ("articles", &[0][..]));
    assert_eq!(schema.columns[0].kind, ColumnType::Uint(64));
    let indexed: Vec<bool> = schema.columns.iter().map(|column| column.indexed).collect();
    assert_eq!(indexed, [true, true, false, true]);
    assert_eq!(schema.texts[0].columns, [1, 2]);
    assert_eq!(schema.texts[0].normalization.width, Width::Narrow);
    assert!(schema.texts[0].normalization.fold_accents);
}

#[test]
fn sources_are_sections() {
    let settings = toml(
        r#"
        [[mysql]]
        url = "mysql://reader:p%40ss@db:3307/shop?copy-threads=3"
        tables = ["items", "log_*"]
        tls = "verify_ca"
        tls_ca = "ca.pem"
        chunk_rows = 500
        [[mysql]]
        name = "second"
        host = "other"
        database = "crm"
        [tables."shop.items"]
        primary_key = ["id"]
        columns = [{ name = "id", type = "uint64" }]
        [tables."shop.other"]
        primary_key = ["id"]
        columns = [{ name = "id", type = "uint64" }]
        "#,
    )
    .unwrap();
    let [first, second] = settings.sources.as_slice() else { panic!("{:?}", settings.sources) };
    assert_eq!((first.name.as_str(), first.host.as_str(), first.port), ("mysql", "db", 3307));
    assert_eq!((first.user.as_str(), first.password.as_str()), ("reader", "p@ss"));
    assert_eq!((first.copy_threads, first.chunk_rows), (3, 500));
    assert_eq!(first.tls.ca.as_deref(), Some(Path::new("/etc/ca.pem")));
    assert_eq!((second.host.as_str(), second.database.as_deref()), ("other", Some("crm")));
    assert!(settings.is_followed("shop.items") && !settings.is_followed("shop.other"));
    assert_eq!(toml("[mysql]\nhost = 'h'\n").unwrap().sources.len(), 1);
    assert!(message(toml("[[mysql]]\n[[mysql]]\n")).contains("name of its own"));
    let error = message(toml("\n[mysql]\nhosts = 'h'\n"));
    assert!(error.contains("line 2") && error.contains("'host'"), "{error}");
    assert!(message(toml("[mysql]\nurl = 'db:3306'\n")).contains("mysql://"));
    assert!(message(toml("[mysql]\ntls = 'yes'\n")).contains("verify_identity"));
    assert!(message(toml("[mysql]\ncopy_threads = 0\n")).contains("between 1 and 64"));
    assert!(yaml(&format!("{TABLE}replication: {{enable: false}}\n")).unwrap().sources.is_empty());
}

#[test]
fn toml_errors_name_line_and_mend() {
    let error = message(toml("data = 'x'\n[lissten]\nline = 'x'\n"));
    assert!(error.contains("line 2") && error.contains("did you mean 'listen'"), "{error}");
    let error = message(toml("[limits]\n\ndefault_limits = 3\n"));
    assert!(error.contains("line 3") && error.contains("'default_limit'"), "{error}");
    let error = message(toml("\n[tables.t]\nprimary_key = ['id']\ncolumn = 3\n"));
    assert!(error.contains("line 2") && error.contains("'columns'"), "{error}");
    let error = message(toml("\n[[users]]\nname = 'a'\n"));
    assert!(error.contains("line 2") && error.contains("password_file"), "{error}");
    let error = message(toml("[limits]\nmax_connections = 'many'\n"));
    assert!(error.contains("line 2"), "{error}");
}

#[test]
fn public_binds_need_credentials() {
    let error = message(toml("[listen]\nline = '0.0.0.0:11016'\n"));
    assert!(error.contains("auth.admin_token"), "{error}");
    let error = message(toml("[listen]\nline = '0.0.0.0:1'\n[auth]\nadmin_token = 'x'\n"));
    assert!(error.contains("allow_cidrs"), "{error}");
    let own = "[listen]\nline='0.0.0.0:1'\n[auth]\nadmin_token='x'\n[network]\nallow_cidrs=";
    assert!(toml(&format!("{own}['10.0.0.0/8']")).is_ok());
    assert!(message(toml(&format!("{own}['::/0']"))).contains("everyone"));
    let error = message(yaml(&format!("{TABLE}api: {{tcp: {{bind: 0.0.0.0}}}}\n")));
    assert!(error.contains("api.admin_token"), "{error}");
}

#[test]
fn a_mygramdb_file_has_its_own_defaults() {
    let settings = yaml(TABLE).unwrap();
    assert_eq!(settings.dialect, Dialect::MygramDb);
    assert_eq!(settings.limits.max_limit, 1000);
    assert_eq!(settings.limits.max_query_length, 128);
    assert_eq!(settings.allow_cidrs, Some(Vec::new()));
    assert!(settings.cache.enabled && !settings.bm25.enable);
    let schema = &settings.tables[0];
    assert_eq!(schema.name, "shop.items");
    assert_eq!(schema.columns.len(), 3);
    assert_eq!(schema.texts[0].normalization.width, Width::Narrow);
    assert!(!schema.texts[0].normalization.fold_case);
    let source = &settings.sources[0];
    assert_eq!((source.host.as_str(), source.port), ("127.0.0.1", 3306));
    assert_eq!(
        (source.tables.as_slice(), source.strict_schema),
        (&["shop.items".to_owned()][..], true)
    );
    assert_eq!(source.definitions, settings.tables);
}

#[test]
fn a_transaction_may_change_as_many_rows_as_in_the_library() {
    let options = Settings::default().engine_options();
    assert_eq!(options.max_batch_changes, 1_000_000);
    assert_eq!(options.max_row_bytes, remora_engine::Options::default().max_row_bytes);
}

#[test]
fn a_mygramdb_file_is_read_strictly() {
    let error = message(yaml(&format!("{TABLE}api: {{default_limits: 7}}\n")));
    assert!(error.contains("line 6") && error.contains("'default_limit'"), "{error}");
    let error = message(yaml(&format!("{TABLE}api: {{default_limit: 2}}\n")));
    assert!(error.contains("between 5 and 1000"), "{error}");
    let error = message(yaml("tables: []\n"));
    assert!(error.contains("mysql"), "{error}");
    let error = message(yaml(&TABLE.replace("type: int", "type: decimal")));
    assert!(error.contains("line 5: tables[0].filters[0].type is 'decimal'"), "{error}");
    let error = message(yaml(&TABLE.replace("{column: body}", "{concat: [a]}")));
    assert!(error.contains("line 4: tables[0].text_source.concat is a list"), "{error}");
    let ignored = TABLE.replace("mysql: {", "mysql: {ignored_ddl_prefixes: ['ALTER', ' '], ");
    assert!(message(yaml(&ignored)).contains("of which none is empty"));
    let cors = "api: {http: {enable: true, enable_cors: true}}\n";
    assert!(message(yaml(&format!("{TABLE}{cors}"))).contains("cors_allow_origin"));
    let json = r#"{"mysql":{"user":"u","database":"d"},"tables":[{"name":"t","text_source":{"column":"c"}}]}"#;
    assert!(Settings::parse(Path::new("x.json"), json).is_ok());
}

#[test]
fn environment_overrides_the_file() {
    let mut settings = Settings::default();
    let set = |settings: &mut Settings, name: &str, value: &str| {
        settings.overlay_environment([(name.into(), value.into())].into_iter())
    };
    // A variable of another program, which need not be text.
    let foreign = <std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(b"\xff\xfe");
    let foreign = [(foreign.to_owned(), foreign.to_owned()), ("X".into(), foreign.to_owned())];
    settings.overlay_environment(foreign.into_iter()).unwrap();
    set(&mut settings, "REMORA_LIMITS_DEFAULT_LIMIT", "9").unwrap();
    set(&mut settings, "REMORA_AUTH_ADMIN_TOKEN", "secret").unwrap();
    set(&mut settings, "PATH", "/bin").unwrap();
    set(&mut settings, "MYGRAM_API_ADMIN_TOKEN", "ignored").unwrap();
    assert_eq!(settings.limits.default_limit, 9);
    assert_eq!(settings.admin_token, "secret");
    let error = set(&mut settings, "REMORA_LIMITS_DEFAULT_LIMITS", "9").unwrap_err().to_string();
    assert!(error.contains("LIMITS_DEFAULT_LIMIT'"), "{error}");
    settings.dialect = Dialect::MygramDb;
    set(&mut settings, "MYGRAM_API_ADMIN_TOKEN", "other").unwrap();
    assert_eq!(settings.admin_token, "other");
}

#[test]
fn every_variable_reads_back_what_it_shows() {
    let mut settings = yaml(TABLE).unwrap();
    for variable in VARIABLES {
        if !variable.secret {
            let shown = variable.show(&settings);
            assert_eq!(variable.set(&mut settings, &shown), Ok(()), "{}", variable.name);
            assert_eq!(variable.show(&settings), shown, "{}", variable.name);
        }
    }
}

#[test]
fn the_example_shows_the_defaults() {
    let example = include_str!("../../../../examples/remora.toml");
    let settings = Settings::parse(Path::new("remora.toml"), example).unwrap();
    assert_eq!(settings.tables.len(), 1);
    let mut defaults = Settings::default();
    defaults.dump.dir = PathBuf::from("remora-data/dumps");
    // The example shows those of a machine with enough memory.
    let has_memory = remora_engine::memory_share(1, 4 << 30) == 4 << 30;
    let differing: Vec<&str> = changes(&defaults, &settings)
        .iter()
        .map(|variable| variable.key)
        .filter(|key| has_memory || !key.ends_with("_mb"))
        .collect();
    assert_eq!(differing, [""; 0]);
    for variable in VARIABLES.iter().filter(|variable| !variable.key.starts_with("mysql.")) {
        let name = variable.key.rsplit('.').next().unwrap();
        let shown = example.contains(&format!("{name} = ")) || variable.key == "bm25.enable";
        assert!(shown, "examples/remora.toml leaves out {}", variable.key);
    }
}

#[test]
fn a_server_has_one_time_zone() {
    let zone = |settings: Result<Settings>| {
        settings.unwrap().time_zone.map(|zone| zone.name().to_owned()).unwrap_or_default()
    };
    assert_eq!(zone(toml("")), "");
    assert_eq!(zone(toml("[mysql]\n")), "");
    assert_eq!(zone(toml("[mysql]\ntime_zone = 'Europe/Berlin'\n")), "Europe/Berlin");
    let url = "[mysql]\nurl = 'mysql://h?time-zone=Asia/Tokyo'\n";
    assert_eq!(zone(toml(url)), "Asia/Tokyo");
    assert_eq!(zone(toml(&format!("{url}time_zone = '+02:00'\n"))), "+02:00");
    let two = |first: &str, second: &str| {
        toml(&format!(
            "[[mysql]]\nname = 'a'\n{first}\n[[mysql]]\nname = 'b'\n{second}\n[[mysql]]\nname = 'c'"
        ))
    };
    assert_eq!(zone(two("", "time_zone = 'SYSTEM'")), "SYSTEM");
    assert_eq!(zone(two("time_zone = '+2:00'", "time_zone = '+02:00'")), "+02:00");
    let error = message(two("time_zone = '+02:00'", "time_zone = '+09:00'"));
    assert!(error.contains("'+02:00' for the source 'a' and '+09:00' for 'b'"), "{error}");
    let error = message(toml("\n[mysql]\ntime_zone = 'Berlin'\n"));
    assert!(error.contains("line 2, mysql: time_zone: 'Berlin' is no time zone"), "{error}");
    assert_eq!(zone(yaml(TABLE)), "+00:00");
    let mygram = TABLE.replace("shop}", "shop, datetime_timezone: \"+09:00\"}");
    assert_eq!(zone(yaml(&mygram)), "+09:00");
    assert_eq!(zone(yaml(&format!("{mygram}replication: {{enable: false}}\n"))), "+09:00");
    let far = yaml(&mygram.replace("+09:00", "+20:00"));
    assert_eq!(far.as_ref().unwrap().time_zone.as_ref().map(|zone| zone.name()), Some("+20:00"));
    let mut far = far.unwrap();
    far.listen.sql = "127.0.0.1:0".to_owned();
    assert!(message(far.finish()).contains("cannot be the time_zone of SQL"));
}

#[test]
fn sphinx_api_needs_a_configured_user_if_users_exist() {
    let of = toml;
    let listen = "[listen]\nsphinx_api = '127.0.0.1:9312'\n";
    assert_eq!(of(listen).unwrap().listen.sphinx_api, "127.0.0.1:9312");
    assert_eq!(of("").unwrap().listen.sphinx_api, "");
    let users = "[[users]]\nname = 'anna'\npassword = 'x'\n";
    for guarded in [users, "[auth]\nadmin_token = 's3cret'\n"] {
        let error = message(of(&format!("{listen}{guarded}")));
        assert!(error.contains("SphinxAPI has no login"), "{error}");
    }
    assert!(of(&format!("{listen}sphinx_api_user = 'anna'\n{users}")).is_ok());
    let error = message(of(&format!("{listen}sphinx_api_user = 'bob'\n{users}")));
    assert!(error.contains("'bob' is none of [[users]]"), "{error}");
    let far = "[listen]\nsphinx_api = '10.0.0.5:9312'\n";
    let error = message(of(&format!("{far}{users}")));
    assert!(error.contains("network.allow_cidrs"), "{error}");
}

#[test]
fn dialects_of_users_and_listeners_are_checked() {
    let user = "[[users]]\nname = 'a'\npassword = 'x'\n";
    let of = |text: &str| toml(&format!("{user}{text}"));
    assert_eq!(of("").unwrap().users[0].is_sphinx, None);
    assert_eq!(of("dialect = 'sphinx'\n").unwrap().users[0].is_sphinx, Some(true));
    assert_eq!(of("dialect = 'mysql'\n").unwrap().users[0].is_sphinx, Some(false));
    assert!(message(of("dialect = 'x'\n")).contains("dialect is 'x'; it is 'mysql' or 'sphinx'"));
    let far = message(toml("[listen]\nsphinx = '10.0.0.5:9306'\n"));
    assert!(far.contains("can be reached from other machines and there are no users"), "{far}");
    let error = message(toml("[listen]\nsphinx = '9306'\n"));
    assert!(error.contains("listen.sphinx '9306' is not HOST:PORT"), "{error}");
}

#[test]
fn tiedot_api_is_off_by_default_and_needs_login_on_public_addresses() {
    assert_eq!(toml("").unwrap().listen.tiedot, "");
    let settings = toml("[listen]\ntiedot = '127.0.0.1:8080'\n").unwrap();
    assert_eq!(settings.listen.tiedot, "127.0.0.1:8080");
    let error = message(toml("[listen]\ntiedot = '0.0.0.0:8080'\n"));
    assert!(error.contains("neither users nor a token are set"), "{error}");
    let error = message(toml("[listen]\ntiedot = '8080'\n"));
    assert!(error.contains("listen.tiedot '8080' is not HOST:PORT"), "{error}");
    let alone = "[listen]\nline = ''\nsql = ''\nhttp = ''\ntiedot = '127.0.0.1:0'\n";
    assert!(toml(alone).is_ok());
}

/// As MygramDB compares: a TIMESTAMP with a moment, a DATETIME with a local time.
#[test]
fn required_filters_are_read_in_the_zone() {
    let file = "mysql: {user: reader, database: shop, datetime_timezone: \"+09:00\"}\n\
                tables:\n  - name: items\n    text_source: {column: body}\n    required_filters:\n\
                \x20     - {name: at, type: timestamp, op: \">=\", value: \"2024-07-01 09:00:00\"}\n\
                \x20     - {name: dt, type: datetime, op: \"<\", value: \"2024-07-01 09:00:00\"}\n\
                \x20     - {name: du, type: datetime, op: \"=\", value: 1719792000}\n\
                replication: {server_id: 7}\n";
    let settings = yaml(file).unwrap().finish().unwrap();
    let required = settings.sources[0].definitions[0].required.clone();
    let Some(Filter::And(filters)) = required else { panic!("{required:?}") };
    let literals = filters.into_iter().map(|filter| match filter {
        Filter::Compare { literal: Literal::Text(text), .. } => text,
        other => panic!("{other:?}"),
    });
    let expected = ["2024-07-01 00:00:00Z", "2024-07-01 09:00:00", "2024-07-01 09:00:00"];
    assert_eq!(literals.collect::<Vec<_>>(), expected);
}

const FOLLOWED: &str = "[[mysql]]\nname = \"a\"\ndatabase = \"shop\"\ntables = [\"art*\", \"blog.posts\"]\n\
                        [[mysql]]\nname = \"b\"\ndatabase = \"news\"\n";

#[test]
fn only_ranked_search_is_configured_for_followed_tables() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("stop.txt"), "the of").unwrap();
    let text = format!(
        "{FOLLOWED}[tables.articles.words]\ncolumns = [\"title\", \"body\"]\nmorphology = \"stem_en\"\n\
         [tables.\"blog.posts\".words]\ncolumns = [\"text\"]\nstopwords = \"stop.txt\"\nmin_infix_len = 2\n"
    );
    let path = directory.path().join("remora.toml");
    let settings = Settings::parse(&path, &text).unwrap().finish().unwrap();
    assert!(settings.tables.is_empty());
    let words = |source: usize| -> Vec<(&str, &[String])> {
        let words = settings.sources[source].words.iter();
        words.map(|(name, words)| (name.as_str(), words.columns.as_slice())).collect()
    };
    let names: Vec<&str> = words(0).iter().map(|(name, _)| *name).collect();
    // By its own database, `articles` is a table of both.
    assert_eq!(names, ["shop.articles", "blog.posts"]);
    assert_eq!(words(1).iter().map(|(name, _)| *name).collect::<Vec<_>>(), ["news.articles"]);
    assert_eq!(words(0)[0].1, ["title", "body"]);
    let posts = &settings.sources[0].words[1].1;
    assert_eq!(posts.files, [("stop.txt".to_owned(), "the of".to_owned())]);
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert!(posts.settings.contains(&pair("min_infix_len", "2")), "{posts:?}");
}

#[test]
fn words_that_no_table_can_have_are_refused_by_name() {
    let words = |name: &str, more: &str| {
        format!("{FOLLOWED}[tables.\"{name}\".words]\ncolumns = [\"title\"]\n{more}")
    };
    for (text, part) in [
        (words("blog.drafts", ""), "[tables.\"blog.drafts\"]"),
        (
            words("orders", "").replace("[[mysql]]\nname = \"b\"\ndatabase = \"news\"\n", ""),
            "orders",
        ),
        (words("articles", "morphology = \"latin\""), "latin"),
        (words("articles", "stopwords = \"gone.txt\""), "gone.txt"),
        (words("articles", "stem = 1"), "stem"),
        (words("articles", "").replace("[\"title\"]", "[]"), "no column"),
        (
            words("articles", "[tables.\"shop.articles\".words]\ncolumns = [\"body\"]"),
            "declared twice",
        ),
    ] {
        let error = message(toml(&text));
        assert!(error.contains(part), "{error} / {part}");
    }
    // The source may be given on the command line.
    let alone = toml("[tables.articles.words]\ncolumns = [\"title\"]").unwrap();
    assert!(
        message(alone.refuse_words_of_unfollowed().map(|()| alone)).contains("no [mysql] follows")
    );
}
