//! Logging. Level, format and file can be changed while the server runs.

use std::{fs::File, io::IsTerminal, sync::Mutex};

use tracing_subscriber::{
    EnvFilter, Registry,
    fmt::{self, writer::BoxMakeWriter},
    layer::{Layer, Layered, SubscriberExt},
    reload,
    util::SubscriberInitExt,
};

use crate::{Error, Result, settings::Logging};

type Filtered = Layered<reload::Layer<EnvFilter, Registry>, Registry>;
type Output = Box<dyn Layer<Filtered> + Send + Sync>;

/// A handle to change the process's log output.
#[derive(Clone)]
pub struct LogHandle {
    filter: reload::Handle<EnvFilter, Registry>,
    output: reload::Handle<Output, Filtered>,
}

impl LogHandle {
    /// Installs the log output of this process. If there is one already, that stays.
    ///
    /// # Errors
    /// [`Error::Io`] if the log file cannot be opened for writing.
    pub fn install(settings: &Logging) -> Result<Self> {
        // The filter is a separate layer, because a filter inside the output layer cannot be replaced.
        let (filter, filter_handle) = reload::Layer::new(filter(settings));
        let (output, output_handle) = reload::Layer::new(output(settings)?);
        if tracing_subscriber::registry().with(filter).with(output).try_init().is_err() {
            tracing::debug!("a log output is already installed and stays");
        }
        Ok(Self { filter: filter_handle, output: output_handle })
    }

    /// Applies a new level, format or file.
    ///
    /// # Errors
    /// [`Error::Io`] if the log file cannot be opened for writing; the output then stays unchanged.
    pub fn apply(&self, settings: &Logging) -> Result<()> {
        let output = output(settings)?;
        let exchanged =
            self.filter.reload(filter(settings)).and_then(|()| self.output.reload(output));
        if exchanged.is_err() {
            tracing::debug!("the log output of this process belongs to another server");
        }
        Ok(())
    }
}

/// Remora's own messages at the configured level; the row store's only from warnings up.
fn filter(settings: &Logging) -> EnvFilter {
    match settings.level.as_str() {
        "off" => EnvFilter::new("off"),
        level => EnvFilter::new(format!("{level},fjall=warn,lsm_tree=warn")),
    }
}

fn output(settings: &Logging) -> Result<Output> {
    let (writer, colours) = match &settings.file {
        None => (BoxMakeWriter::new(std::io::stderr), std::io::stderr().is_terminal()),
        Some(path) => {
            let file = File::options().create(true).append(true).open(path);
            let file = file.map_err(|source| Error::io("cannot write the log", path, source))?;
            (BoxMakeWriter::new(Mutex::new(file)), false)
        }
    };
    let layer = fmt::layer().with_writer(writer).with_ansi(colours).with_target(false);
    Ok(if settings.format == "json" { layer.json().boxed() } else { layer.boxed() })
}
