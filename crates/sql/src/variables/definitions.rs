//! The definitions of system variables: name, scope, type and default, as in MySQL 9.7, without
//! those of features that do not exist here.

use std::sync::LazyLock;

use remora_engine::Value;
use rustc_hash::FxHashMap;

use VariableKind::{Double, Nullable, Switch, Text, Unsigned};

/// The scope of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VariableScope {
    /// Only a global value.
    Global,
    /// Only a session value.
    Session,
    /// A global value, which new sessions start with, and a session value.
    Both,
}

/// The type of a variable's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VariableKind {
    /// An unsigned integer.
    Unsigned,
    /// ON or OFF; SELECT returns 1 or 0.
    Switch,
    /// Text.
    Text,
    /// Text or NULL.
    Nullable,
    /// A floating-point number.
    Double,
}

/// The definition of a variable.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VariableDefinition {
    /// Its name.
    pub name: &'static str,
    /// Its scope.
    pub scope: VariableScope,
    /// The type of its values.
    pub kind: VariableKind,
    /// Whether it is read-only.
    pub fixed: bool,
    default: &'static str,
}

impl VariableDefinition {
    /// Marks a variable as read-only.
    const fn fixed(self) -> Self {
        Self { fixed: true, ..self }
    }

    /// Whether setting it changes the behaviour of a session.
    pub(crate) fn has_effect(&self) -> bool {
        EFFECTIVE.contains(&self.name)
    }

    /// The key in the settings file that decides this variable.
    pub(crate) fn setting(&self) -> Option<&'static str> {
        SETTINGS.iter().find(|(name, _)| *name == self.name).map(|(_, setting)| *setting)
    }

    /// The built-in default.
    pub(crate) fn default_value(&self) -> Value {
        match self.kind {
            Nullable if self.default == "NULL" => Value::Null,
            Text | Nullable => Value::Text(self.default.into()),
            Switch => Value::Int(i64::from(self.default == "ON")),
            Unsigned => Value::Uint(self.default.parse().unwrap_or(0)),
            Double => Value::Float(self.default.parse().unwrap_or(0.0)),
        }
    }

    /// A value as SHOW VARIABLES prints it.
    pub(crate) fn shown(&self, value: &Value) -> String {
        match (self.kind, value) {
            (Switch, Value::Int(0)) => "OFF".to_owned(),
            (Switch, Value::Int(_)) => "ON".to_owned(),
            (Double, Value::Float(number)) => format!("{number:.6}"),
            (_, Value::Null) => String::new(),
            (_, value) => value.to_string(),
        }
    }
}

/// The variable of this name, ignoring case.
pub(crate) fn definition(name: &str) -> Option<&'static VariableDefinition> {
    static BY_NAME: LazyLock<FxHashMap<&str, &VariableDefinition>> =
        LazyLock::new(|| DEFINITIONS.iter().map(|each| (each.name, each)).collect());
    let found = BY_NAME.get(name).copied();
    found.or_else(|| BY_NAME.get(name.to_lowercase().as_str()).copied())
}

const fn both(name: &'static str, kind: VariableKind, default: &'static str) -> VariableDefinition {
    of(VariableScope::Both, name, kind, default)
}

const fn session(
    name: &'static str,
    kind: VariableKind,
    default: &'static str,
) -> VariableDefinition {
    of(VariableScope::Session, name, kind, default)
}

const fn global(
    name: &'static str,
    kind: VariableKind,
    default: &'static str,
) -> VariableDefinition {
    of(VariableScope::Global, name, kind, default)
}

const fn of(
    scope: VariableScope,
    name: &'static str,
    kind: VariableKind,
    default: &'static str,
) -> VariableDefinition {
    VariableDefinition { name, scope, kind, fixed: false, default }
}

/// Variables that have an effect. All others exist because clients set and read them.
const EFFECTIVE: [&str; 32] = [
    "autocommit",
    "block_encryption_mode",
    "character_set_client",
    "character_set_connection",
    "character_set_database",
    "character_set_results",
    "collation_connection",
    "collation_database",
    "cte_max_recursion_depth",
    "default_week_format",
    "div_precision_increment",
    "group_concat_max_len",
    "identity",
    "insert_id",
    "last_insert_id",
    "lc_time_names",
    "max_allowed_packet",
    "max_execution_time",
    "session_track_schema",
    "session_track_system_variables",
    "session_track_transaction_info",
    "sql_dialect",
    "sql_mode",
    "sql_notes",
    "sql_select_limit",
    "sql_wait_for_position",
    "sql_wait_for_position_ms",
    "time_zone",
    "timestamp",
    "transaction_read_only",
    "tx_read_only",
    "wait_timeout",
];

/// Variables decided by the settings file, whatever clients set.
const SETTINGS: [(&str, &str); 8] = [
    ("connect_timeout", "sql.connect_timeout_s"),
    ("interactive_timeout", "sql.wait_timeout_s"),
    ("local_infile", "sql.local_infile"),
    ("max_connections", "sql.max_connections"),
    ("max_prepared_stmt_count", "sql.max_prepared_statements"),
    ("max_user_connections", "sql.max_user_connections"),
    ("net_write_timeout", "sql.write_timeout_s"),
    ("require_secure_transport", "sql.require_tls"),
];

/// All definitions, sorted by name.
pub(crate) const DEFINITIONS: &[VariableDefinition] = &[
    both("auto_increment_increment", Unsigned, "1"),
    both("auto_increment_offset", Unsigned, "1"),
    both("autocommit", Switch, "ON"),
    global("automatic_sp_privileges", Switch, "ON"),
    global("basedir", Text, "/").fixed(),
    both("big_tables", Switch, "OFF"),
    global("bind_address", Text, "127.0.0.1").fixed(),
    both("binlog_format", Text, "ROW"),
    both("binlog_row_image", Text, "FULL"),
    global("binlog_row_metadata", Text, "MINIMAL"),
    both("block_encryption_mode", Text, "aes-128-ecb"),
    both("character_set_client", Text, "utf8mb4"),
    both("character_set_connection", Text, "utf8mb4"),
    both("character_set_database", Text, "utf8mb4"),
    both("character_set_filesystem", Text, "binary"),
    both("character_set_results", Text, "utf8mb4"),
    both("character_set_server", Text, "utf8mb4"),
    global("character_set_system", Text, "utf8mb3").fixed(),
    both("collation_connection", Text, "utf8mb4_0900_ai_ci"),
    both("collation_database", Text, "utf8mb4_0900_ai_ci"),
    both("collation_server", Text, "utf8mb4_0900_ai_ci"),
    both("completion_type", Text, "NO_CHAIN"),
    global("connect_timeout", Unsigned, "10"),
    both("cte_max_recursion_depth", Unsigned, "1000"),
    global("datadir", Text, "/").fixed(),
    both("default_collation_for_utf8mb4", Text, "utf8mb4_0900_ai_ci"),
    global("default_password_lifetime", Unsigned, "0"),
    both("default_storage_engine", Text, "InnoDB"),
    both("default_table_encryption", Switch, "OFF"),
    both("default_tmp_storage_engine", Text, "InnoDB"),
    both("default_week_format", Unsigned, "0"),
    global("disabled_storage_engines", Text, "").fixed(),
    global("disconnect_on_expired_password", Switch, "ON").fixed(),
    both("div_precision_increment", Unsigned, "4"),
    both("end_markers_in_json", Switch, "OFF"),
    global("enforce_gtid_consistency", Text, "ON"),
    both("eq_range_index_dive_limit", Unsigned, "200"),
    session("error_count", Unsigned, "0").fixed(),
    global("event_scheduler", Text, "ON"),
    both("explain_format", Text, "TREE"),
    both("explicit_defaults_for_timestamp", Switch, "ON"),
    session("external_user", Nullable, "NULL").fixed(),
    global("flush", Switch, "OFF"),
    global("flush_time", Unsigned, "0"),
    both("foreign_key_checks", Switch, "ON"),
    global("general_log", Switch, "OFF"),
    both("group_concat_max_len", Unsigned, "1024"),
    global("gtid_executed", Text, "").fixed(),
    global("gtid_mode", Text, "ON"),
    session("gtid_next", Text, "AUTOMATIC"),
    both("gtid_owned", Text, "").fixed(),
    global("gtid_purged", Text, ""),
    global("have_compress", Text, "YES").fixed(),
    global("have_dynamic_loading", Text, "YES").fixed(),
    global("have_geometry", Text, "YES").fixed(),
    global("have_profiling", Text, "YES").fixed(),
    global("have_query_cache", Text, "NO").fixed(),
    global("have_rtree_keys", Text, "YES").fixed(),
    global("have_statement_timeout", Text, "YES").fixed(),
    global("have_symlink", Text, "DISABLED").fixed(),
    global("hostname", Text, "").fixed(),
    session("identity", Unsigned, "0"),
    both("information_schema_stats_expiry", Unsigned, "86400"),
    global("init_connect", Text, ""),
    global("innodb_default_row_format", Text, "dynamic"),
    global("innodb_file_per_table", Switch, "ON"),
    both("innodb_lock_wait_timeout", Unsigned, "50"),
    global("innodb_page_size", Unsigned, "16384").fixed(),
    global("innodb_read_only", Switch, "OFF").fixed(),
    both("innodb_strict_mode", Switch, "ON"),
    global("innodb_version", Text, "9.7.4").fixed(),
    session("insert_id", Unsigned, "0"),
    both("interactive_timeout", Unsigned, "28800"),
    both("join_buffer_size", Unsigned, "262144"),
    both("keep_files_on_create", Switch, "OFF"),
    global("key_buffer_size", Unsigned, "8388608"),
    session("last_insert_id", Unsigned, "0"),
    both("lc_messages", Text, "en_US"),
    both("lc_time_names", Text, "en_US"),
    global("license", Text, "Apache-2.0").fixed(),
    global("local_infile", Switch, "OFF"),
    both("lock_wait_timeout", Unsigned, "31536000"),
    global("log_bin", Switch, "OFF").fixed(),
    global("log_bin_basename", Nullable, "NULL").fixed(),
    global("log_bin_index", Nullable, "NULL").fixed(),
    global("log_bin_trust_function_creators", Switch, "OFF"),
    global("log_error", Text, "stderr").fixed(),
    global("log_output", Text, "FILE"),
    global("log_raw", Switch, "OFF"),
    global("log_replica_updates", Switch, "OFF").fixed(),
    global("log_slave_updates", Switch, "OFF").fixed(),
    global("log_timestamps", Text, "UTC"),
    both("long_query_time", Double, "10.000000"),
    both("low_priority_updates", Switch, "OFF"),
    global("lower_case_file_system", Switch, "OFF").fixed(),
    global("lower_case_table_names", Unsigned, "0").fixed(),
    both("max_allowed_packet", Unsigned, "67108864"),
    global("max_connect_errors", Unsigned, "100"),
    global("max_connections", Unsigned, "151"),
    both("max_error_count", Unsigned, "1024"),
    both("max_execution_time", Unsigned, "0"),
    both("max_heap_table_size", Unsigned, "16777216"),
    both("max_join_size", Unsigned, "18446744073709551615"),
    global("max_prepared_stmt_count", Unsigned, "16382"),
    both("max_sort_length", Unsigned, "1024"),
    both("max_sp_recursion_depth", Unsigned, "0"),
    both("max_user_connections", Unsigned, "0"),
    both("min_examined_row_limit", Unsigned, "0"),
    both("net_buffer_length", Unsigned, "16384"),
    both("net_read_timeout", Unsigned, "30"),
    both("net_retry_count", Unsigned, "10"),
    both("net_write_timeout", Unsigned, "60"),
    global("offline_mode", Switch, "OFF"),
    both("old_alter_table", Switch, "OFF"),
    global("open_files_limit", Unsigned, "20000").fixed(),
    both("optimizer_max_subgraph_pairs", Unsigned, "100000"),
    both("optimizer_prune_level", Unsigned, "1"),
    both("optimizer_search_depth", Unsigned, "62"),
    both(
        "optimizer_switch",
        Text,
        "index_merge=on,index_merge_union=on,index_merge_sort_union=on,index_merge_intersection=on,engine_condition_pushdown=on,index_condition_pushdown=on,mrr=on,mrr_cost_based=on,block_nested_loop=on,batched_key_access=off,materialization=on,semijoin=on,loosescan=on,firstmatch=on,duplicateweedout=on,subquery_materialization_cost_based=on,use_index_extensions=on,condition_fanout_filter=on,derived_merge=on,use_invisible_indexes=off,skip_scan=on,hash_join=on,subquery_to_derived=off,prefer_ordering_index=on,hypergraph_optimizer=off,derived_condition_pushdown=on,hash_set_operations=on",
    ),
    both("optimizer_trace", Text, "enabled=off,one_line=off"),
    global("password_require_current", Switch, "OFF"),
    global("performance_schema", Switch, "OFF").fixed(),
    global("pid_file", Text, "").fixed(),
    global("port", Unsigned, "9306").fixed(),
    both("profiling", Switch, "OFF"),
    both("profiling_history_size", Unsigned, "15"),
    session("pseudo_thread_id", Unsigned, "0"),
    global("query_cache_size", Unsigned, "0").fixed(),
    global("query_cache_type", Text, "OFF").fixed(),
    session("rand_seed1", Unsigned, "0"),
    session("rand_seed2", Unsigned, "0"),
    both("range_optimizer_max_mem_size", Unsigned, "8388608"),
    global("read_only", Switch, "OFF"),
    global("regexp_time_limit", Unsigned, "32"),
    global("report_host", Nullable, "NULL").fixed(),
    global("report_port", Unsigned, "9306").fixed(),
    global("report_user", Nullable, "NULL").fixed(),
    global("require_secure_transport", Switch, "OFF"),
    global("secure_file_priv", Nullable, "NULL").fixed(),
    global("server_id", Unsigned, "1"),
    global("server_uuid", Text, "00000000-0000-0000-0000-000000000000").fixed(),
    both("session_track_gtids", Text, "OFF"),
    both("session_track_schema", Switch, "ON"),
    both("session_track_state_change", Switch, "OFF"),
    both(
        "session_track_system_variables",
        Text,
        "time_zone,autocommit,character_set_client,character_set_results,character_set_connection",
    ),
    both("session_track_transaction_info", Text, "OFF"),
    both("show_create_table_verbosity", Switch, "OFF"),
    both("show_gipk_in_create_table_and_information_schema", Switch, "ON"),
    global("skip_name_resolve", Switch, "OFF").fixed(),
    global("skip_networking", Switch, "OFF").fixed(),
    global("skip_show_database", Switch, "OFF").fixed(),
    global("slow_launch_time", Unsigned, "2"),
    global("slow_query_log", Switch, "OFF"),
    global("socket", Text, "").fixed(),
    both("sort_buffer_size", Unsigned, "262144"),
    both("sql_auto_is_null", Switch, "OFF"),
    both("sql_big_selects", Switch, "ON"),
    both("sql_buffer_result", Switch, "OFF"),
    both("sql_dialect", Text, "mysql"),
    both("sql_generate_invisible_primary_key", Switch, "OFF"),
    session("sql_log_bin", Switch, "ON"),
    both("sql_log_off", Switch, "OFF"),
    both(
        "sql_mode",
        Text,
        "ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION",
    ),
    both("sql_notes", Switch, "ON"),
    both("sql_quote_show_create", Switch, "ON"),
    global("sql_replica_skip_counter", Unsigned, "0"),
    both("sql_require_primary_key", Switch, "OFF"),
    both("sql_safe_updates", Switch, "OFF"),
    both("sql_select_limit", Unsigned, "18446744073709551615"),
    session("sql_wait_for_position", Text, ""),
    both("sql_wait_for_position_ms", Unsigned, "10000"),
    both("sql_warnings", Switch, "OFF"),
    global("super_read_only", Switch, "OFF"),
    global("system_time_zone", Text, "UTC").fixed(),
    global("table_definition_cache", Unsigned, "2000"),
    both("time_zone", Text, "SYSTEM"),
    session("timestamp", Double, "0"),
    both("tmp_table_size", Unsigned, "16777216"),
    both("transaction_isolation", Text, "REPEATABLE-READ"),
    both("transaction_read_only", Switch, "OFF"),
    both("tx_isolation", Text, "REPEATABLE-READ"),
    both("tx_read_only", Switch, "OFF"),
    both("unique_checks", Switch, "ON"),
    both("updatable_views_with_limit", Text, "YES"),
    global("version", Text, "").fixed(),
    global("version_comment", Text, "Remora").fixed(),
    global("version_compile_machine", Text, "x86_64").fixed(),
    global("version_compile_os", Text, "Linux").fixed(),
    global("version_compile_zlib", Text, "1.3.2").fixed(),
    both("wait_timeout", Unsigned, "28800"),
    session("warning_count", Unsigned, "0").fixed(),
];
