//! `[mysql]` or several `[[mysql]]` of a `remora.toml`: the servers to follow.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use remora_mysql::Zone;
use remora_source::mysql::settings::{MysqlSettings, OnLostPosition, TlsMode};
use serde::Deserialize;

use super::keys;

/// One section. `url` provides what other keys omit.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct MysqlSection {
    url: Option<String>,
    name: Option<String>,
    host: Option<String>,
    port: Option<u16>,
    user: Option<String>,
    password: Option<String>,
    database: Option<String>,
    tables: Option<Vec<String>>,
    tls: Option<String>,
    tls_ca: Option<PathBuf>,
    tls_cert: Option<PathBuf>,
    tls_key: Option<PathBuf>,
    server_public_key: Option<PathBuf>,
    time_zone: Option<String>,
    server_id: Option<u32>,
    connect_timeout_s: Option<u64>,
    copy_rows_per_second: Option<u64>,
    copy_threads: Option<usize>,
    chunk_rows: Option<usize>,
    strict_schema: Option<bool>,
    on_lost_position: Option<String>,
    ignored_ddl_prefixes: Option<Vec<String>>,
}

/// Parses the sections.
pub(super) fn read(sections: toml::Value, folder: &Path) -> Result<Vec<MysqlSettings>, String> {
    let sections = match sections {
        toml::Value::Array(sections) => sections,
        section => vec![section],
    };
    sections.into_iter().map(|section| read_one(section, folder)).collect()
}

fn read_one(section: toml::Value, folder: &Path) -> Result<MysqlSettings, String> {
    let typed: MysqlSection =
        section.try_into().map_err(|error: toml::de::Error| keys::explain(error.message()))?;
    typed.meaning(folder)
}

impl MysqlSection {
    fn meaning(self, folder: &Path) -> Result<MysqlSettings, String> {
        let mut settings = match &self.url {
            Some(url) => MysqlSettings::from_url(url).map_err(|error| error.to_string())?,
            None => MysqlSettings::default(),
        };
        set(&mut settings.name, self.name);
        set(&mut settings.host, self.host);
        set(&mut settings.port, self.port);
        set(&mut settings.user, self.user);
        set(&mut settings.password, self.password);
        settings.database = self.database.or(settings.database);
        set(&mut settings.tables, self.tables);
        set(&mut settings.tls.mode, self.tls.as_deref().map(tls_mode).transpose()?);
        let tls = &mut settings.tls;
        tls.ca = self.tls_ca.map(|path| folder.join(path)).or(tls.ca.take());
        let key = self.server_public_key.map(|path| folder.join(path));
        tls.server_public_key = key.or(tls.server_public_key.take());
        tls.identity = match (self.tls_cert, self.tls_key) {
            (Some(cert), Some(key)) => Some((folder.join(cert), folder.join(key))),
            (None, None) => tls.identity.take(),
            _ => return Err("tls_cert and tls_key belong together: set both".to_owned()),
        };
        let zone = self.time_zone.as_deref().map(Zone::parse).transpose();
        let zone = zone.map_err(|error| format!("time_zone: {error}"))?;
        settings.time_zone = zone.or(settings.time_zone);
        settings.server_id = self.server_id.or(settings.server_id);
        set(&mut settings.connect_timeout, self.connect_timeout_s.map(Duration::from_secs));
        let most = self.copy_rows_per_second.filter(|rows| *rows > 0);
        settings.copy_rows_per_second = most.or(settings.copy_rows_per_second);
        set(&mut settings.copy_threads, within("copy_threads", self.copy_threads, 64)?);
        set(&mut settings.chunk_rows, within("chunk_rows", self.chunk_rows, 1_000_000)?);
        set(&mut settings.strict_schema, self.strict_schema);
        let lost = self.on_lost_position.as_deref().map(on_lost_position).transpose()?;
        set(&mut settings.on_lost_position, lost);
        let ignored = self.ignored_ddl_prefixes.map(prefixes).transpose()?;
        set(&mut settings.ignored_ddl_prefixes, ignored);
        Ok(settings)
    }
}

/// An empty prefix would ignore every change.
pub(super) fn prefixes(typed: Vec<String>) -> Result<Vec<String>, String> {
    if typed.iter().any(|prefix| prefix.trim().is_empty()) {
        return Err(
            "ignored_ddl_prefixes has an empty one: every statement begins with it".to_owned()
        );
    }
    Ok(typed)
}

fn set<T>(setting: &mut T, typed: Option<T>) {
    if let Some(value) = typed {
        *setting = value;
    }
}

fn within(name: &str, value: Option<usize>, most: usize) -> Result<Option<usize>, String> {
    match value {
        Some(value) if !(1..=most).contains(&value) => {
            Err(format!("{name} is {value}; it lies between 1 and {most}"))
        }
        value => Ok(value),
    }
}

fn on_lost_position(name: &str) -> Result<OnLostPosition, String> {
    match name {
        "copy" => Ok(OnLostPosition::Copy),
        "stop" => Ok(OnLostPosition::Stop),
        _ => Err(format!("on_lost_position '{name}' is neither copy nor stop")),
    }
}

fn tls_mode(name: &str) -> Result<TlsMode, String> {
    match name {
        "off" => Ok(TlsMode::Off),
        "preferred" => Ok(TlsMode::Preferred),
        "required" => Ok(TlsMode::Required),
        "verify_ca" => Ok(TlsMode::VerifyCa),
        "verify_identity" => Ok(TlsMode::VerifyIdentity),
        _ => Err(format!(
            "tls '{name}' is none of off, preferred, required, verify_ca, verify_identity"
        )),
    }
}
