//! AUTH, INFO, DEBUG, CACHE and CONFIG.

use std::{fmt::Write, path::Path, time::Instant};

use remora_protocol::line::{Auth, Cache, Config, LineError, code, reply};
use remora_sql::Access;

use super::{Session, variables};
use crate::{
    accounts::verify_token,
    report,
    requests::{Answer, blocking},
    settings::{Change, Dialect, Settings, VARIABLES, Variable, mygramdb_help},
};

impl Session {
    pub(super) fn authenticate(
        &mut self,
        auth: &Auth,
        settings: &Settings,
        out: &mut Vec<u8>,
    ) -> Answer {
        let logins = &self.caller.shared.logins;
        let attempt = logins.failures.begin_attempt(self.address, Instant::now());
        let attempt = attempt.ok_or_else(LineError::too_many_failures)?;
        // The answer is delayed in both cases, so that the delay does not reveal whether the guess was right.
        self.delay = attempt.wait;
        let secret = auth.secret.as_bytes();
        let proved = match &auth.user {
            None => verify_token(settings, secret, self.address),
            Some(user) => blocking(|| logins.verify_password(settings, user, secret, self.address)),
        };
        let Some(identity) = proved else {
            attempt.failed(Instant::now());
            return Err(LineError::auth_failed());
        };
        attempt.succeeded();
        self.caller.identity = Some(identity);
        reply::write_auth_ok(out);
        Ok(())
    }

    pub(super) fn info(&self, out: &mut Vec<u8>) -> Answer {
        reply::write_info(
            out,
            &blocking(|| report::info(&self.caller.shared, &|table| self.caller.is_visible(table))),
        );
        Ok(())
    }

    pub(super) fn set_debug(&mut self, on: bool, out: &mut Vec<u8>) -> Answer {
        self.debug = on;
        reply::write_debug(out, on);
        Ok(())
    }

    pub(super) fn set_position(&mut self, on: bool, out: &mut Vec<u8>) -> Answer {
        self.position = on;
        reply::write_position(out, on);
        Ok(())
    }

    pub(super) fn cache(&self, command: &Cache, out: &mut Vec<u8>) -> Answer {
        match command {
            Cache::Clear(None) => {
                self.caller.shared.cache.clear(None);
                reply::write_cache_cleared(out, None);
            }
            Cache::Clear(Some(table)) => {
                let table = self.caller.resolve(table, Access::Write)?;
                self.caller.shared.cache.clear(Some(&table));
                reply::write_cache_cleared(out, Some(&table));
            }
            Cache::Enable | Cache::Disable => {
                let on = *command == Cache::Enable;
                let set = [("cache.enabled".to_owned(), on.to_string())];
                variables::set(&self.caller.shared, &set, &mut Vec::new())?;
                reply::write_cache_enabled(out, on);
            }
            Cache::Stats => {
                let stats = report::cache_stats(&self.caller.shared);
                reply::write_cache_stats(out, &stats);
            }
        }
        Ok(())
    }

    pub(super) fn config(
        &self,
        command: &Config,
        settings: &Settings,
        out: &mut Vec<u8>,
    ) -> Answer {
        let shown = match command {
            Config::Show(path) => show(settings, path.as_deref())?,
            Config::Help(path) => help(settings, path.as_deref())?,
            Config::Verify(file) => blocking(|| verify(settings, file))?,
        };
        reply::write_config(out, &shown);
        Ok(())
    }
}

/// The current settings, with secrets masked. Those of a MygramDB file are YAML in its sections.
fn show(settings: &Settings, path: Option<&str>) -> Result<String, LineError> {
    if let Some(file) = &settings.mygramdb {
        return file.show(path).ok_or_else(|| {
            let path = path.unwrap_or_default();
            let why = format!("CONFIG SHOW failed: Path not found: {path}");
            LineError::new(code::CONFIG_VALUE, why)
        });
    }
    let mut text = String::new();
    for variable in below(settings, path)? {
        let name = variable.name(settings.dialect);
        let _ = writeln!(text, "{name}: {}", variable.show(settings));
    }
    Ok(text)
}

/// The meaning of settings, and when a new value takes effect.
fn help(settings: &Settings, path: Option<&str>) -> Result<String, LineError> {
    if settings.dialect == Dialect::MygramDb {
        return mygramdb_help(path).ok_or_else(|| unknown_path(path.unwrap_or_default()));
    }
    let mut text = String::new();
    for variable in below(settings, path)? {
        let when = match variable.change {
            Change::Set => "SET changes it",
            Change::Reload => "SIGHUP changes it",
            Change::Restart => "needs a restart",
        };
        let _ = writeln!(text, "{}: {} ({when})", variable.name(settings.dialect), variable.help);
    }
    Ok(text)
}

/// The variables at or below a path.
fn below(settings: &Settings, path: Option<&str>) -> Result<Vec<&'static Variable>, LineError> {
    let path = path.unwrap_or("");
    let is_below = |name: &str| {
        let rest = name.strip_prefix(path);
        path.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let found: Vec<&'static Variable> =
        VARIABLES.iter().filter(|variable| is_below(variable.name(settings.dialect))).collect();
    match found.is_empty() {
        true => Err(unknown_path(path)),
        false => Ok(found),
    }
}

/// Reads a settings file beside the active one, without applying it.
fn verify(settings: &Settings, file: &str) -> Result<String, LineError> {
    let active = settings.file.as_deref().ok_or_else(|| {
        refusal("CONFIG VERIFY needs a server that was started with a settings file".to_owned())
    })?;
    let plain = !file.contains(['/', '\\']) && !file.starts_with('.');
    let known = [".yaml", ".yml", ".json", ".toml"].iter().any(|ending| file.ends_with(ending));
    if !plain || !known {
        return Err(refusal(
            "CONFIG VERIFY takes the name of a .yaml, .yml, .json or .toml file beside the active \
             settings file"
                .to_owned(),
        ));
    }
    let path = active.parent().unwrap_or(Path::new(".")).join(file);
    if !path.is_file() {
        let why = format!("CONFIG VERIFY: file not found: {file}");
        return Err(LineError::new(code::CONFIG, why));
    }
    let read = Settings::read(&path).map_err(|error| {
        let why = format!("Configuration validation failed: {error}");
        LineError::new(code::CONFIG_VALUE, why)
    })?;
    let names: Vec<&str> = read.tables.iter().map(|table| table.name.as_str()).collect();
    let mut text = format!("Configuration is valid\n  Tables: {}", names.len());
    if !names.is_empty() {
        let _ = write!(text, " ({})", names.join(", "));
    }
    text.push('\n');
    for source in &read.sources {
        let _ = writeln!(text, "  MySQL: {}:{}", source.host, source.port);
    }
    Ok(text)
}

fn unknown_path(path: &str) -> LineError {
    LineError::new(code::NOT_FOUND, format!("Configuration path not found: {path}"))
}

fn refusal(message: String) -> LineError {
    LineError::new(code::INVALID_ARGUMENT, message)
}
