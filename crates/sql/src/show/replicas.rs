//! SHOW REPLICA STATUS and its variants: the followed servers.

use remora_engine::Value;

use super::grid::{Grid, text};
use crate::{ReplicaReport, state::SessionState};

pub(super) const REPLICAS: [&str; 5] = [
    "Server_Id int unsigned NOT NULL",
    "Host varchar(255) NOT NULL",
    "Port int unsigned NOT NULL",
    "Source_Id int unsigned NOT NULL",
    "Replica_UUID varchar(36) NOT NULL",
];
pub(super) const LOG_STATUS: [&str; 5] = [
    "File varchar(512) NOT NULL",
    "Position bigint unsigned NOT NULL",
    "Binlog_Do_DB varchar(255) NOT NULL",
    "Binlog_Ignore_DB varchar(255) NOT NULL",
    "Executed_Gtid_Set longtext NOT NULL",
];
pub(super) const LOG_EVENTS: [&str; 6] = [
    "Log_name varchar(512) NOT NULL",
    "Pos bigint NOT NULL",
    "Event_type varchar(20) NOT NULL",
    "Server_id int unsigned NOT NULL",
    "End_log_pos bigint NOT NULL",
    "Info longtext NOT NULL",
];

/// The columns of SHOW REPLICA STATUS. Names with `#` are numbers, the others texts.
const STATUS: &[&str] = &[
    "Replica_IO_State",
    "Source_Host",
    "Source_User",
    "#Source_Port",
    "#Connect_Retry",
    "Source_Log_File",
    "#Read_Source_Log_Pos",
    "Relay_Log_File",
    "#Relay_Log_Pos",
    "Relay_Source_Log_File",
    "Replica_IO_Running",
    "Replica_SQL_Running",
    "Replicate_Do_DB",
    "Replicate_Ignore_DB",
    "Replicate_Do_Table",
    "Replicate_Ignore_Table",
    "Replicate_Wild_Do_Table",
    "Replicate_Wild_Ignore_Table",
    "#Last_Errno",
    "Last_Error",
    "#Skip_Counter",
    "#Exec_Source_Log_Pos",
    "#Relay_Log_Space",
    "Until_Condition",
    "Until_Log_File",
    "#Until_Log_Pos",
    "Source_SSL_Allowed",
    "Source_SSL_CA_File",
    "Source_SSL_CA_Path",
    "Source_SSL_Cert",
    "Source_SSL_Cipher",
    "Source_SSL_Key",
    "#Seconds_Behind_Source",
    "Source_SSL_Verify_Server_Cert",
    "#Last_IO_Errno",
    "Last_IO_Error",
    "#Last_SQL_Errno",
    "Last_SQL_Error",
    "Replicate_Ignore_Server_Ids",
    "#Source_Server_Id",
    "Source_UUID",
    "Source_Info_File",
    "#SQL_Delay",
    "#SQL_Remaining_Delay",
    "Replica_SQL_Running_State",
    "#Source_Retry_Count",
    "Source_Bind",
    "Last_IO_Error_Timestamp",
    "Last_SQL_Error_Timestamp",
    "Source_SSL_Crl",
    "Source_SSL_Crlpath",
    "Retrieved_Gtid_Set",
    "Executed_Gtid_Set",
    "#Auto_Position",
    "Replicate_Rewrite_DB",
    "Channel_Name",
    "Source_TLS_Version",
    "Source_public_key_path",
    "#Get_Source_public_key",
    "Network_Namespace",
];
/// Numbers that are NULL when unknown.
const NULLABLE: [&str; 2] = ["Seconds_Behind_Source", "SQL_Remaining_Delay"];

/// SHOW REPLICA STATUS for one channel or all. With `old`, columns have the names of SHOW SLAVE
/// STATUS.
pub(super) fn status(session: &SessionState, channel: Option<&str>, old: bool) -> Grid {
    let columns: Vec<String> = STATUS.iter().map(|column| declared(column, old)).collect();
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    let mut grid = Grid::new(&columns);
    for report in session.shared.host.replicas() {
        if channel.is_none_or(|channel| channel == report.source) {
            grid.push(STATUS.iter().map(|column| value(&report, column)).collect());
        }
    }
    grid
}

fn declared(column: &str, old: bool) -> String {
    let named = column.trim_start_matches('#');
    let name = match old {
        true => named.replace("Source", "Master").replace("Replica", "Slave"),
        false => named.to_owned(),
    };
    let name = name.replace("Slavete", "Replicate");
    match column.starts_with('#') {
        true => format!("{name} bigint"),
        false => format!("{name} text NOT NULL"),
    }
}

fn value(report: &ReplicaReport, column: &str) -> Value {
    let name = column.trim_start_matches('#');
    let field = report.fields.iter().find(|(known, _)| known == name);
    let said = field.map(|(_, value)| value.as_str());
    if column.starts_with('#') {
        let number = said.and_then(|value| value.parse().ok()).map(Value::Int);
        let missing = if NULLABLE.contains(&name) { Value::Null } else { Value::Int(0) };
        return number.unwrap_or(missing);
    }
    match name {
        "Channel_Name" => text(&report.source),
        "Retrieved_Gtid_Set" | "Executed_Gtid_Set" => text(said.unwrap_or(&report.applied)),
        "Until_Condition" => text("None"),
        _ => text(said.unwrap_or_default()),
    }
}
