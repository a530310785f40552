//! Converts client errors to what they mean for the caller.

use mysql::{DriverError, MySqlError};
use remora_mysql::ErrorCode;

use super::{quote::quoted, settings::MysqlSettings};
use crate::Error;

/// The grants that following needs, for an account of which only the user name is known.
fn grants_advice(settings: &MysqlSettings) -> String {
    grants(settings, &account(&settings.user, "%"))
}

/// The grants that following needs, for the account in the source's spelling.
pub(super) fn grants(settings: &MysqlSettings, account: &str) -> String {
    let database = settings.database.as_deref();
    let database = database.map_or("*".to_owned(), quoted);
    format!(
        "run at the source: GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO {account}; \
         GRANT SELECT ON {database}.* TO {account};"
    )
}

/// The grant that reading one table needs.
pub(super) fn grant_on_table(database: &str, table: &str, account: &str) -> String {
    let (database, table) = (quoted(database), quoted(table));
    format!("run at the source: GRANT SELECT ON {database}.{table} TO {account};")
}

/// `'user'@'host'`, as statements name an account.
pub(super) fn account(user: &str, host: &str) -> String {
    format!("'{}'@'{}'", user.replace('\'', "''"), host.replace('\'', "''"))
}

/// A library's message, without links to its own documentation.
fn plain(message: &str) -> String {
    let is_page = |word: &&str| word.contains("://");
    let words = message.split_whitespace().filter(|word| !is_page(word));
    let words: Vec<&str> = words.collect();
    words.join(" ").trim_end_matches(':').to_owned()
}

/// The source cannot be reached.
pub(super) fn unreachable(settings: &MysqlSettings, message: impl Into<String>) -> Error {
    Error::Unreachable { address: settings.address(), message: message.into() }
}

/// Converts a client error. `doing` is the statement or a description of what was attempted.
pub fn client_error(settings: &MysqlSettings, doing: &str, error: mysql::Error) -> Error {
    match error {
        mysql::Error::MySqlError(error) => server_error(settings, doing, &error),
        mysql::Error::DriverError(DriverError::TlsNotSupported) => Error::Requirement {
            message: format!("{} has no TLS", settings.address()),
            advice: "set ssl_cert and ssl_key at the source, or ssl-mode=off here".to_owned(),
        },
        mysql::Error::DriverError(DriverError::UnknownAuthPlugin(plugin)) => denied(
            settings,
            format!("it wants the authentication plugin {plugin}, which is not supported"),
            "give the user one of caching_sha2_password, mysql_native_password or ed25519".into(),
        ),
        mysql::Error::TlsError(error) => {
            unreachable(settings, format!("TLS: {}", plain(&error.to_string())))
        }
        mysql::Error::IoError(error) => unreachable(settings, plain(&error.to_string())),
        mysql::Error::DriverError(error) => unreachable(settings, plain(&error.to_string())),
        mysql::Error::CodecError(error) => unreachable(settings, plain(&error.to_string())),
        other => statement_error(doing, plain(&other.to_string())),
    }
}

fn server_error(settings: &MysqlSettings, doing: &str, error: &MySqlError) -> Error {
    let error_text = || format!("{} (error {})", error.message, error.code);
    let Some(code) = ErrorCode::from_number(error.code) else {
        return statement_error(doing, error_text());
    };
    match code {
        ErrorCode::AccessDenied if doing == "connecting" => {
            denied(settings, error_text(), "check the user's name and password".to_owned())
        }
        ErrorCode::HostNotAllowed => denied(
            settings,
            error_text(),
            format!(
                "run at the source: CREATE USER '{}'@'%' IDENTIFIED BY '...'; and then: {}",
                settings.user.replace('\'', "''"),
                grants_advice(settings)
            ),
        ),
        ErrorCode::PasswordExpired
        | ErrorCode::PasswordExpiredAtLogin
        | ErrorCode::AccountLocked
        | ErrorCode::AccountLockedMariaDb => denied(
            settings,
            error_text(),
            "unlock the user or give it a new password there".to_owned(),
        ),
        ErrorCode::AccessDenied
        | ErrorCode::DatabaseAccessDenied
        | ErrorCode::TableAccessDenied
        | ErrorCode::ColumnAccessDenied
        | ErrorCode::SpecificAccessDenied => {
            denied(settings, error_text(), grants_advice(settings))
        }
        ErrorCode::SecureTransportRequired => Error::Requirement {
            message: format!("{} takes encrypted connections only", settings.address()),
            advice: "set ssl-mode=required here".to_owned(),
        },
        ErrorCode::UnknownDatabase => Error::Setting(error_text()),
        ErrorCode::TooManyConnections
        | ErrorCode::TooManyUserConnections
        | ErrorCode::UserLimitReached
        | ErrorCode::ServerShutdown
        | ErrorCode::HostBlocked
        | ErrorCode::Interrupted
        | ErrorCode::ConnectionKilled
        | ErrorCode::FatalReadingBinlog => unreachable(settings, error_text()),
        _ => statement_error(doing, error_text()),
    }
}

fn denied(settings: &MysqlSettings, message: String, advice: String) -> Error {
    Error::AccessDenied {
        address: settings.address(),
        user: settings.user.clone(),
        message,
        advice,
    }
}

fn statement_error(doing: &str, message: String) -> Error {
    let statement = doing.chars().take(200).collect();
    Error::Statement { statement, message }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_messages_have_no_links_of_libraries() {
        let error = std::io::Error::other(
            "peer closed connection without sending TLS close_notify: \
             https://docs.rs/rustls/latest/rustls/manual/_03_howto/index.html#unexpected-eof",
        );
        let settings = MysqlSettings::default();
        let shown = client_error(&settings, "connecting", mysql::Error::IoError(error)).to_string();
        let expected = "cannot reach 127.0.0.1:3306: peer closed connection without sending TLS \
                        close_notify";
        assert_eq!(shown, expected);
    }

    #[test]
    fn grants_name_accounts_as_statements_do() {
        let settings = MysqlSettings { database: Some("a`b".to_owned()), ..Default::default() };
        let shown = grants(&settings, &account("o'g", "10.0.0.%"));
        assert!(shown.contains("GRANT SELECT ON `a``b`.* TO 'o''g'@'10.0.0.%';"), "{shown}");
    }
}
