//! The keys of a sphinx.conf: all of Sphinx 2.2.11, and Manticore's keys for plain indexes.
//!
//! A key is used, or has no effect (it tunes Sphinx or names its files), or is refused by name if an index that has it
//! is loaded or served.

/// The kinds of sections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SectionKind {
    Source,
    Index,
    Indexer,
    Searchd,
    Common,
}

/// A known key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Key {
    pub name: &'static str,
    /// Whether a section may repeat it.
    pub is_list: bool,
    pub meaning: Meaning,
}

/// How a key is handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// It is acted on.
    Used,
    /// It has no effect that a query could notice.
    Harmless,
    /// It is not supported; the text tells what to do instead. Harmless if its value is empty or 0.
    Refused(&'static str),
}

use Meaning::{Harmless, Refused, Used};

impl SectionKind {
    pub fn of(word: &str) -> Option<Self> {
        let all = [Self::Source, Self::Index, Self::Indexer, Self::Searchd, Self::Common];
        all.into_iter().find(|kind| kind.name().eq_ignore_ascii_case(word))
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Source => "source",
            Self::Index => "index",
            Self::Indexer => "indexer",
            Self::Searchd => "searchd",
            Self::Common => "common",
        }
    }

    /// Whether sections of this kind have names and parents.
    pub fn is_named(self) -> bool {
        matches!(self, Self::Source | Self::Index)
    }

    /// Its keys, grouped by meaning and by whether they may be repeated.
    fn groups(self) -> &'static [(Meaning, bool, &'static str)] {
        match self {
            Self::Source => &SOURCE,
            Self::Index => &INDEX,
            Self::Indexer => &INDEXER,
            Self::Searchd => &SEARCHD,
            Self::Common => &COMMON,
        }
    }
}

const NO_KILL_LIST: Meaning = Refused(
    "rows are not taken out of other tables but by rows of the same number in a later part of a distributed index: \
     load all rows into one index",
);
const JSON_AS_IT_COMES: Meaning = Refused("JSON is kept as it comes: leave it out");
const REMOVED: Meaning = Refused("Sphinx 2.2 has it no more: leave it out");

const SOURCE: [(Meaning, bool, &str); 11] = [
    (
        Used,
        false,
        "type sql_host sql_user sql_pass sql_db sql_port mysql_ssl_key mysql_ssl_cert mysql_ssl_ca sql_query \
         sql_query_range sql_range_step sql_ranged_throttle xmlpipe_command tsvpipe_command csvpipe_command \
         csvpipe_delimiter",
    ),
    (
        Used,
        true,
        "sql_query_pre sql_query_post sql_query_post_index sql_attr_uint sql_attr_bool sql_attr_timestamp \
         sql_attr_float sql_attr_bigint sql_attr_string sql_attr_json sql_field_string xmlpipe_field \
         xmlpipe_field_string xmlpipe_attr_uint xmlpipe_attr_bool xmlpipe_attr_timestamp xmlpipe_attr_float \
         xmlpipe_attr_bigint xmlpipe_attr_string xmlpipe_attr_json tsvpipe_field tsvpipe_field_string \
         tsvpipe_attr_uint tsvpipe_attr_bool tsvpipe_attr_timestamp tsvpipe_attr_float tsvpipe_attr_bigint \
         tsvpipe_attr_string tsvpipe_attr_json csvpipe_field csvpipe_field_string csvpipe_attr_uint \
         csvpipe_attr_bool csvpipe_attr_timestamp csvpipe_attr_float csvpipe_attr_bigint csvpipe_attr_string \
         csvpipe_attr_json sql_attr_multi xmlpipe_attr_multi xmlpipe_attr_multi_64 tsvpipe_attr_multi \
         tsvpipe_attr_multi_64 csvpipe_attr_multi csvpipe_attr_multi_64 sql_joined_field sql_file_field \
         unpack_mysqlcompress unpack_zlib",
    ),
    (Used, false, "unpack_mysqlcompress_maxsize"),
    (
        Harmless,
        false,
        "mysql_connect_flags mssql_winauth mssql_unicode sql_query_info sql_column_buffers",
    ),
    (Harmless, true, "sql_str2ordinal_column"),
    (
        Refused("only TCP is spoken: set sql_host = 127.0.0.1 and sql_port, and leave it out"),
        false,
        "sql_sock",
    ),
    (NO_KILL_LIST, false, "sql_query_killlist"),
    (Refused("only MySQL and MariaDB are read"), false, "odbc_dsn sql_charset sql_role"),
    (
        Refused("let the command give UTF-8, as with '| iconv -c -f utf-8 -t utf-8'"),
        false,
        "xmlpipe_fixup_utf8",
    ),
    (
        REMOVED,
        true,
        "sql_attr_str2ordinal sql_attr_str2wordcount sql_field_str2wordcount xmlpipe_attr_str2ordinal \
         xmlpipe_attr_wordcount xmlpipe_field_wordcount",
    ),
    (
        Refused("hooks are not run: run them before and after"),
        false,
        "hook_connect hook_query_range hook_post_index",
    ),
];

const INDEX: [(Meaning, bool, &str); 9] = [
    (
        Used,
        false,
        "type path morphology stopwords exceptions min_word_len charset_table ignore_chars min_prefix_len \
         min_infix_len ngram_len ngram_chars html_strip html_index_attrs html_remove_elements index_exact_words \
         min_stemming_len overshort_step stopword_step blend_chars blend_mode stopwords_unstemmed ha_strategy \
         agent_connect_timeout agent_query_timeout",
    ),
    (
        Used,
        true,
        "source wordforms rt_field rt_attr_uint rt_attr_bigint rt_attr_float rt_attr_timestamp rt_attr_string \
          rt_attr_json rt_attr_bool rt_attr_multi rt_attr_multi_64 local agent agent_persistent",
    ),
    // The settings of ranked search refuse these themselves, unless they are off.
    (
        Used,
        false,
        "bigram_freq_words bigram_index expand_keywords hitless_words index_sp index_zones infix_fields \
         phrase_boundary phrase_boundary_step prefix_fields rlp_context",
    ),
    (Used, true, "regexp_filter"),
    (
        Harmless,
        false,
        "docinfo mlock embedded_limit charset_type enable_star ondisk_dict preopen inplace_enable \
         inplace_hit_gap inplace_docinfo_gap inplace_reloc_factor inplace_write_factor hit_format rt_mem_limit \
         dict index_field_lengths divide_remote_ranges ondisk_attrs max_substring_len \
         access_plain_attrs access_blob_attrs access_doclists access_hitlists attr_update_reserve \
         docstore_block_size docstore_compression docstore_compression_level optimize_cutoff \
         read_buffer_docs read_buffer_hits stored_fields",
    ),
    // In a distributed index it is refused.
    (Harmless, true, "agent_blackhole"),
    (
        Refused(
            "weights are made of the counts of the table, or of all parts of a distributed one: leave it out",
        ),
        false,
        "global_idf",
    ),
    (Refused("token filters are not loaded: leave it out"), false, "index_token_filter"),
    (NO_KILL_LIST, true, "killlist_target"),
];

const INDEXER: [(Meaning, bool, &str); 3] = [
    (Used, false, "on_json_attr_error max_file_field_buffer on_file_field_error"),
    (
        Harmless,
        false,
        "mem_limit max_iops max_iosize max_xmlpipe2_field write_buffer lemmatizer_cache ignore_non_plain",
    ),
    (JSON_AS_IT_COMES, false, "json_autoconv_numbers json_autoconv_keynames"),
];

const SEARCHD: [(Meaning, bool, &str); 3] = [
    (Used, true, "listen"),
    (Used, false, "data_dir"),
    (
        Harmless,
        false,
        "address port log query_log read_timeout client_timeout max_children pid_file max_matches \
         seamless_rotate preopen_indexes unlink_old ondisk_dict_default attr_flush_period max_packet_size \
         mva_updates_pool max_filters max_filter_values listen_backlog read_buffer read_unhinted \
         max_batch_queries subtree_docs_cache subtree_hits_cache workers prefork dist_threads binlog_flush \
         binlog_path binlog_max_log_size thread_stack expansion_limit rt_flush_period query_log_format \
         mysql_version_string plugin_dir collation_server collation_libc_locale watchdog \
         prefork_rotation_throttle snippets_file_prefix sphinxql_state rt_merge_iops rt_merge_maxiosize \
         ha_ping_interval ha_period_karma predicted_time_costs persistent_connections_limit \
         ondisk_attrs_default shutdown_timeout query_log_min_msec agent_connect_timeout agent_query_timeout \
         agent_retry_delay agent_retry_count queue_max_length net_workers threads max_threads_per_query \
         max_connections preopen_tables access_plain_attrs access_blob_attrs access_doclists access_hitlists \
         docstore_cache_size read_buffer_docs read_buffer_hits sphinxql_timeout",
    ),
];

const COMMON: [(Meaning, bool, &str); 3] = [
    (Used, false, "on_json_attr_error"),
    (
        Harmless,
        false,
        "lemmatizer_base rlp_root rlp_environment rlp_max_batch_size rlp_max_batch_docs plugin_dir",
    ),
    (JSON_AS_IT_COMES, false, "json_autoconv_numbers json_autoconv_keynames"),
];

fn all(kind: SectionKind) -> impl Iterator<Item = Key> {
    kind.groups().iter().flat_map(|&(meaning, is_list, names)| {
        names.split_ascii_whitespace().map(move |name| Key { name, is_list, meaning })
    })
}

/// The key of this name in sections of this kind.
pub(super) fn find(kind: SectionKind, name: &str) -> Option<Key> {
    all(kind).find(|key| key.name.eq_ignore_ascii_case(name))
}

/// The most similar known key, if one is similar.
pub(super) fn nearest(kind: SectionKind, name: &str) -> Option<&'static str> {
    let name: String = name.chars().take(64).collect();
    let distance = |key: Key| (edits(&name.to_ascii_lowercase(), key.name), key.name);
    all(kind).map(distance).filter(|(edits, key)| *edits <= key.len() / 3).min().map(|(_, key)| key)
}

/// The edit distance of two texts.
fn edits(left: &str, right: &str) -> usize {
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (at, a) in left.bytes().enumerate() {
        let mut above = at;
        let mut before = at + 1;
        for (cell, b) in row.iter_mut().skip(1).zip(right.bytes()) {
            let changed = above + usize::from(a != b);
            above = *cell;
            *cell = changed.min(above + 1).min(before + 1);
            before = *cell;
        }
        if let Some(first) = row.first_mut() {
            *first = at + 1;
        }
    }
    row.last().copied().unwrap_or(left.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configuration_keys_are_unique() {
        for kind in ["source", "index", "indexer", "searchd", "common"] {
            let kind = SectionKind::of(kind).unwrap();
            let mut names: Vec<_> = all(kind).map(|key| key.name).collect();
            let count = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), count, "{kind:?}");
        }
        assert_eq!(find(SectionKind::Index, "Morphology").unwrap().name, "morphology");
        assert!(find(SectionKind::Searchd, "morphology").is_none());
    }

    #[test]
    fn the_nearest_key_is_named() {
        assert_eq!(nearest(SectionKind::Index, "min_infix_length"), Some("min_infix_len"));
        assert_eq!(nearest(SectionKind::Index, "Sources"), Some("source"));
        assert_eq!(nearest(SectionKind::Index, "xyz"), None);
        assert_eq!((edits("kitten", "sitting"), edits("", "abc"), edits("abc", "")), (3, 3, 3));
    }
}
