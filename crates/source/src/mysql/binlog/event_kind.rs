//! The kinds of events, by the byte in their header.

pub const QUERY: u8 = 2;
pub const STOP: u8 = 3;
pub const ROTATE: u8 = 4;
pub const INTVAR: u8 = 5;
pub const LOAD: u8 = 6;
pub const CREATE_FILE: u8 = 8;
pub const APPEND_BLOCK: u8 = 9;
pub const EXECUTE_LOAD: u8 = 10;
pub const DELETE_FILE: u8 = 11;
pub const NEW_LOAD: u8 = 12;
pub const RAND: u8 = 13;
pub const USER_VAR: u8 = 14;
pub const FORMAT_DESCRIPTION: u8 = 15;
pub const XID: u8 = 16;
pub const BEGIN_LOAD_QUERY: u8 = 17;
pub const EXECUTE_LOAD_QUERY: u8 = 18;
pub const TABLE_MAP: u8 = 19;
pub const WRITE_ROWS_V1: u8 = 23;
pub const UPDATE_ROWS_V1: u8 = 24;
pub const DELETE_ROWS_V1: u8 = 25;
pub const INCIDENT: u8 = 26;
pub const HEARTBEAT: u8 = 27;
pub const IGNORABLE: u8 = 28;
pub const ROWS_QUERY: u8 = 29;
pub const WRITE_ROWS: u8 = 30;
pub const UPDATE_ROWS: u8 = 31;
pub const DELETE_ROWS: u8 = 32;
pub const GTID: u8 = 33;
pub const ANONYMOUS_GTID: u8 = 34;
pub const PREVIOUS_GTIDS: u8 = 35;
pub const TRANSACTION_CONTEXT: u8 = 36;
pub const VIEW_CHANGE: u8 = 37;
pub const XA_PREPARE: u8 = 38;
pub const PARTIAL_UPDATE_ROWS: u8 = 39;
pub const TRANSACTION_PAYLOAD: u8 = 40;
pub const HEARTBEAT_V2: u8 = 41;
pub const GTID_TAGGED: u8 = 42;

// MariaDB's own.
pub const ANNOTATE_ROWS: u8 = 160;
pub const BINLOG_CHECKPOINT: u8 = 161;
pub const MARIADB_GTID: u8 = 162;
pub const GTID_LIST: u8 = 163;
pub const START_ENCRYPTION: u8 = 164;
pub const QUERY_COMPRESSED: u8 = 165;
pub const WRITE_ROWS_COMPRESSED_V1: u8 = 166;
pub const UPDATE_ROWS_COMPRESSED_V1: u8 = 167;
pub const DELETE_ROWS_COMPRESSED_V1: u8 = 168;
pub const WRITE_ROWS_COMPRESSED: u8 = 169;
pub const UPDATE_ROWS_COMPRESSED: u8 = 170;
pub const DELETE_ROWS_COMPRESSED: u8 = 171;

/// The kind's name in messages.
pub fn name(kind: u8) -> String {
    let name = match kind {
        QUERY => "QUERY",
        ROTATE => "ROTATE",
        FORMAT_DESCRIPTION => "FORMAT_DESCRIPTION",
        XID => "XID",
        TABLE_MAP => "TABLE_MAP",
        WRITE_ROWS_V1 | WRITE_ROWS => "WRITE_ROWS",
        UPDATE_ROWS_V1 | UPDATE_ROWS => "UPDATE_ROWS",
        DELETE_ROWS_V1 | DELETE_ROWS => "DELETE_ROWS",
        PARTIAL_UPDATE_ROWS => "PARTIAL_UPDATE_ROWS",
        HEARTBEAT | HEARTBEAT_V2 => "HEARTBEAT",
        GTID | MARIADB_GTID => "GTID",
        GTID_TAGGED => "GTID_TAGGED",
        XA_PREPARE => "XA_PREPARE",
        TRANSACTION_PAYLOAD => "TRANSACTION_PAYLOAD",
        QUERY_COMPRESSED => "QUERY_COMPRESSED",
        WRITE_ROWS_COMPRESSED_V1..=DELETE_ROWS_COMPRESSED => "ROWS_COMPRESSED",
        _ => return format!("kind {kind}"),
    };
    name.to_owned()
}
