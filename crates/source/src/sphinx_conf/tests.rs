//! Common code of this folder's tests, and tests of the whole file.

use super::{
    columns::Column,
    documents::{Document, DocumentSink},
    *,
};

/// Keeps a source's output.
#[derive(Default)]
pub(super) struct Kept {
    pub columns: Vec<Column>,
    /// The id and the texts of each document.
    pub documents: Vec<Vec<String>>,
    pub warnings: Vec<String>,
}

impl DocumentSink for Kept {
    fn columns(&mut self, columns: &[Column]) -> Result<()> {
        self.columns = columns.to_vec();
        Ok(())
    }

    fn document(&mut self, document: &Document) -> Result<()> {
        let cells = std::iter::once(&document.number).chain(&document.cells);
        let text = |cell: &Vec<u8>| String::from_utf8_lossy(cell).into_owned();
        self.documents.push(cells.map(text).collect());
        Ok(())
    }

    fn warning(&mut self, message: String) {
        self.warnings.push(message);
    }
}

fn conf(text: &str) -> SphinxConf {
    SphinxConf::parse("sphinx.conf", text).unwrap()
}

#[test]
fn index_types_are_recognized() {
    let conf = conf(
        "index base {\nmorphology = stem_en\n}\nindex a : base {\nsource = s\n}\n\
         index r {\ntype = rt\n}\nindex d {\ntype = distributed\nlocal = a\nlocal = r\n}\n\
         index p {\ntype = percolate\n}\n\
         index t {\ntype = template\n}\n",
    );
    let kinds: Vec<_> = conf.indexes().collect();
    assert_eq!(
        kinds,
        [
            ("base", IndexKind::Template),
            ("a", IndexKind::Plain),
            ("r", IndexKind::RealTime),
            ("d", IndexKind::Distributed),
            ("p", IndexKind::Percolate),
            ("t", IndexKind::Template),
        ]
    );
    assert!(conf.warnings().is_empty());
}

#[test]
fn a_distributed_index_has_its_locals_and_agents() {
    let of = |lines: &str| {
        let conf = conf(&format!("index d {{\ntype = distributed\n{lines}\n}}\n"));
        conf.distributed_table("d").map_err(|error| error.to_string())
    };
    assert_eq!(of("local = a\nlocal = b, c").unwrap().parts(), ["a", "b", "c"]);
    assert_eq!(of("local = a\nagent =\nagent_query_timeout = 1").unwrap().parts(), ["a"]);
    let lines = "local = a\nagent = h:9306:i|g:9306[ha_strategy=nodeads]\nagent_persistent = h:1:x,y\n\
                 agent_query_timeout = 200\nha_strategy = roundrobin";
    let both = of(lines).unwrap();
    assert_eq!(both.parts(), ["a"]);
    assert_eq!(both.agents(), ["h:9306:i|g:9306[ha_strategy=nodeads]", "h:1:x,y[conn=pconn]"]);
    let settings = [("ha_strategy", "roundrobin"), ("agent_query_timeout", "200")];
    assert_eq!(both.agent_settings(), settings.map(|(a, b)| (a.to_owned(), b.to_owned())));
    assert!(of("agent = h:9306:i").unwrap().is_distributed());
    for (lines, message) in [
        ("local = a\nagent = h:9306", "sphinx.conf:4: agent: 'h:9306' names no index"),
        ("agent = h:i", "sphinx.conf:3: agent: 'h:i' is no host:port:index"),
        ("agent_blackhole = h:9312:i", "sphinx.conf:3: agent_blackhole: "),
        ("", "it has no parts"),
        ("local = a\nlocal = a", "has the part \"a\" twice"),
        ("local = d", "a part of itself"),
    ] {
        let error = of(lines).unwrap_err();
        assert!(error.contains(message), "{error} / {message}");
    }
}

#[test]
fn a_percolate_index_has_documents() {
    let of = |lines: &str| {
        let conf = conf(&format!("index p {{\ntype = percolate\n{lines}\n}}\n"));
        conf.percolate_documents("p").map_err(|error| error.to_string())
    };
    let documents =
        of("rt_attr_uint = year\nrt_field = Title\nrt_attr_string = s\nrt_field = body\n\
                        rt_attr_multi = tags\nmin_infix_len = 2\npath = /x");
    let documents = documents.unwrap();
    let declared: Vec<(&str, &str)> = documents
        .columns
        .iter()
        .map(|column| (column.name.as_str(), column.declared.as_deref().unwrap()))
        .collect();
    let expected = [
        ("year", "int unsigned"),
        ("title", "text"),
        ("s", "longtext"),
        ("body", "text"),
        ("tags", "multi"),
    ];
    assert_eq!(declared, expected);
    assert!(documents.primary_key.is_empty());
    let words = documents.words.unwrap();
    assert_eq!(words.columns, [1, 3]);
    let settings = [("charset_table", "sphinx22"), ("min_infix_len", "2")];
    assert_eq!(words.settings, settings.map(|(name, value)| (name.to_owned(), value.to_owned())));
    for (lines, message) in [
        ("rt_attr_uint = year", "index 'p': there is no field to search"),
        ("rt_field = a\nrt_attr_uint = a", "column 'a' is there twice"),
        ("rt_field = a\nindex_token_filter = x", "sphinx.conf:4: index_token_filter: "),
    ] {
        let error = of(lines).unwrap_err();
        assert!(error.contains(message), "{error} / {message}");
    }
}

#[test]
fn a_real_time_index_is_a_table() {
    let conf = conf(
        "index r {\ntype = rt\nrt_field = Title\nrt_attr_uint = year\nrt_attr_json = j\n\
         rt_attr_string = s\nrt_attr_multi_64 = big\nrt_attr_multi = tags\nrt_field = body\nmin_infix_len = 2\nmorphology =\nrt_mem_limit = 1G\n}\n",
    );
    let schema = conf.real_time_table("r").unwrap();
    let names: Vec<_> = schema.columns.iter().map(|column| column.name.as_str()).collect();
    assert_eq!(names, ["id", "title", "body", "year", "s", "tags", "big", "j"]);
    let declared = |at: usize| schema.columns[at].declared.as_deref();
    assert_eq!((declared(5), declared(6)), (Some("multi NOT NULL"), Some("multi64 NOT NULL")));
    let indexed: Vec<_> = schema.paths.iter().map(|path| (path.column, path.names.len())).collect();
    assert_eq!(indexed, [(5, 0), (6, 0)]);
    let words = schema.words.clone().unwrap();
    assert_eq!(words.columns, [1, 2]);
    let settings = [("charset_table", "sphinx22"), ("min_infix_len", "2")];
    let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(words.settings, settings);
    schema.validate().unwrap();
}

/// What Sphinx 2.2.11 shows of the same index by DESC, and takes by INSERT without a list of columns.
#[test]
fn columns_of_real_time_indexes_stand_as_in_sphinx() {
    let conf = conf(
        "index b2 {\ntype = rt\nrt_attr_bool = flag\nrt_attr_string = s1\nrt_field = f1\nrt_attr_multi_64 = m64\n\
         rt_attr_timestamp = ts\nrt_attr_json = j\nrt_attr_uint = bits:4\nrt_attr_float = fl\nrt_attr_string = s2\n\
         rt_field = f2\nrt_attr_bigint = bi\nrt_attr_multi = m32\nrt_attr_uint = u2\n}\n",
    );
    let schema = conf.real_time_table("b2").unwrap();
    let names: Vec<_> = schema.columns.iter().map(|column| column.name.as_str()).collect();
    let expected =
        ["id", "f1", "f2", "bits", "u2", "bi", "fl", "ts", "s1", "s2", "m32", "m64", "j", "flag"];
    assert_eq!(names, expected);
}

#[test]
fn refused_rows_have_a_line_and_a_key() {
    let cases = [
        ("rt_attr_multi = title", "column 'title' is there twice"),
        ("index_token_filter = lib.so:f", "sphinx.conf:4: index_token_filter: "),
        ("morphology = lemmatize_en", "sphinx.conf:4: "),
        ("expand_keywords = 2", "sphinx.conf:4: "),
        ("global_idf = words.idf", "sphinx.conf:4: global_idf: weights are made of"),
        ("rt_attr_uint = id", "a column is named id"),
        ("rt_attr_string = title", "column 'title' is there twice"),
        ("stopwords = /no/such/file", "/no/such/file"),
    ];
    for (line, message) in cases {
        let conf = conf(&format!("index r {{\ntype = rt\nrt_field = title\n{line}\n}}\n"));
        let error = conf.real_time_table("r").unwrap_err().to_string();
        assert!(error.contains(message), "{error} / {message}");
    }
    let conf = conf("index r {\ntype = rt\nrt_attr_multi =\nexpand_keywords = 0\n}\n");
    assert!(conf.real_time_table("r").unwrap_err().to_string().contains("there is no field"));
    assert!(conf.real_time_table("q").unwrap_err().to_string().ends_with("it has r"));
}

#[test]
fn sources_are_checked_before_anything_runs() {
    let plan = |settings: &str| {
        let conf = conf(&format!("source s {{\n{settings}\n}}\nindex i {{\nsource = s\n}}\n"));
        plan::Plan::of(&conf, conf.index("i").unwrap()).map(|plan| plan.sources.len())
    };
    let cases = [
        ("sql_db = d", "sphinx.conf:1: the type of source 's' is missing"),
        ("type = pgsql", "sphinx.conf:2: the type of source 's' is 'pgsql'"),
        ("type = tsvpipe", "source 's' needs tsvpipe_command"),
        ("type = mysql\nsql_query = SELECT 1", "source 's' needs sql_host"),
        (
            "type = mysql\nsql_host = h\nsql_query = SELECT 1\nsql_query_range = SELECT 1",
            "needs $start",
        ),
        (
            "type = mysql\nsql_host = h\nsql_query = SELECT 1\nsql_port = x",
            "sphinx.conf:5: sql_port: 'x'",
        ),
        (
            "type = mysql\nsql_host = h\nsql_query = SELECT 1\nsql_attr_multi = uint tag from",
            "sphinx.conf:5: sql_attr_multi: 'uint tag from' is not like",
        ),
        (
            "type = mysql\nsql_host = h\nsql_query = SELECT 1\nsql_joined_field = t from payload-query; SELECT 1",
            "sphinx.conf:5: sql_joined_field: payloads are not kept",
        ),
        (
            "type = mysql\nsql_host = h\nsql_query = SELECT 1\nunpack_mysqlcompress_maxsize = x",
            "sphinx.conf:5: unpack_mysqlcompress_maxsize: 'x' is no number of bytes",
        ),
        (
            "type = mysql\nsql_query_killlist = SELECT",
            "sphinx.conf:3: sql_query_killlist: rows are not taken out of",
        ),
        ("type = csvpipe\ncsvpipe_command = x\ncsvpipe_delimiter = ab", "is not one character"),
    ];
    for (settings, message) in cases {
        let error = plan(settings).unwrap_err().to_string();
        assert!(error.contains(message), "{error} / {message}");
    }
    // Keys of other types of sources are ignored.
    assert_eq!(plan("type = tsvpipe\ntsvpipe_command = x\nsql_attr_multi = x").unwrap(), 1);
    let nowhere = conf("index i {\nsource = s\n}\n");
    let error = plan::Plan::of(&nowhere, nowhere.index("i").unwrap()).err().unwrap();
    assert!(error.to_string().starts_with("sphinx.conf:2: there is no source 's'"), "{error}");
}

/// Also if only other queries of the source are run in ranges.
#[test]
fn invalid_source_settings_are_refused() {
    let plan = |setting: &str, indexer: &str| {
        let mysql = "type = mysql\nsql_host = h\nsql_query = SELECT 1";
        let conf = conf(&format!(
            "source s {{\n{mysql}\n{setting}\n}}\nindex i {{\nsource = s\n}}\nindexer {{\n{indexer}\n}}\n"
        ));
        plan::Plan::of(&conf, conf.index("i").unwrap()).map(|plan| plan.sources.len())
    };
    for (setting, indexer, message) in [
        ("sql_range_step = x", "", "sphinx.conf:5: sql_range_step: 'x' is no whole number"),
        ("sql_ranged_throttle = 1s", "", "sphinx.conf:5: sql_ranged_throttle: '1s' is no whole"),
        (
            "unpack_mysqlcompress_maxsize = 65M",
            "",
            "sphinx.conf:5: unpack_mysqlcompress_maxsize: '65M' is more than a document has",
        ),
        (
            "",
            "max_file_field_buffer = 65M",
            "sphinx.conf:11: max_file_field_buffer: '65M' is more than a document has",
        ),
    ] {
        let error = plan(setting, indexer).unwrap_err().to_string();
        assert!(error.contains(message), "{error} / {message}");
    }
    let (setting, indexer) = ("unpack_mysqlcompress_maxsize = 64M", "max_file_field_buffer = 64M");
    assert_eq!(plan(setting, indexer).unwrap(), 1);
    assert_eq!(plan("sql_range_step = 7", "").unwrap(), 1);
}

#[test]
fn searchd_section_has_listen_addresses_and_paths() {
    let conf_of = |searchd: &str| conf(&format!("index i {{\npath = /var/i/data\n}}\n{searchd}"));
    let text =
        "searchd {\nlisten = 9312\nlisten = 127.0.0.1:9306:mysql41\nlog = x\npid_file = y\n}\n";
    let listen = conf_of(text).listen().unwrap();
    assert_eq!(listen[0].place, ListenAddress::AnyAddress(9312));
    assert_eq!(listen[1].place, ListenAddress::Address("127.0.0.1:9306".to_owned()));
    assert_eq!(listen[1].line, "sphinx.conf:6");
    assert_eq!(conf_of(text).unused(), ["searchd.log", "searchd.pid_file"]);
    let default: Vec<_> = conf_of("").listen().unwrap().into_iter().map(|it| it.place).collect();
    assert_eq!(default, [ListenAddress::AnyAddress(9312), ListenAddress::AnyAddress(9306)]);
    let twice = conf_of("searchd {\nlisten = 1\nlisten = 2\n}\n").listen().unwrap_err().to_string();
    assert!(twice.contains("sphinx.conf:6: listen = 2: sphinx.conf:5 listens for that"), "{twice}");
    assert_eq!(conf_of("").data().unwrap(), Path::new("/var/i/remora"));
    let data_dir = "searchd {\ndata_dir = /d\n}\n";
    assert_eq!(conf_of(data_dir).data().unwrap(), Path::new("/d/remora"));
    let error = conf_of("index j {\npath = /var/j/data\n}\n").data().unwrap_err().to_string();
    assert!(error.contains("several folders, as /var/i/ and /var/j/"), "{error}");
    assert!(conf("").data().unwrap_err().to_string().contains("--data"));
}
