//! `unpack_zlib` and `unpack_mysqlcompress`: compressed columns of a mysql source. `sql_file_field`: columns with file
//! names, which are replaced by the files' texts.

use std::{fs::File, io::Read};

use flate2::read::ZlibDecoder;

use super::{
    documents::{Document, DocumentSink},
    text::{Section, Setting},
    wrong,
};
use crate::{Error, Result, files::MAX_RECORD_BYTES};

/// The default limit of bytes of a decompressed text.
const DEFAULT_UNPACKED_BYTES: u64 = 16 << 20;
/// The default limit of bytes of a file.
const DEFAULT_FILE_BYTES: u64 = 8 << 20;
/// The bits of the length that COMPRESS() writes.
const LENGTH_BITS: u32 = 0x3fff_ffff;

/// What to do if a document's file cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OnError {
    /// The field is empty.
    Ignore,
    /// The document is skipped.
    Skip,
    /// The load fails.
    Fail,
}

/// The conversion of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Zlib,
    MysqlCompress,
    File,
}

/// The columns with conversions.
#[derive(Debug)]
pub(super) struct Unpacking {
    /// The steps by lower-case column name, in the order of application.
    steps: Vec<(String, Step)>,
    most_unpacked_bytes: u64,
    most_file_bytes: u64,
    on_error: OnError,
}

impl Unpacking {
    /// Reads the settings of a source and of the indexer.
    pub fn of_section(file: &str, section: &Section, indexer: Option<&Section>) -> Result<Self> {
        let mut steps = Vec::new();
        for (key, step) in [
            ("unpack_zlib", Step::Zlib),
            ("unpack_mysqlcompress", Step::MysqlCompress),
            ("sql_file_field", Step::File),
        ] {
            let named = section.all(key).filter(|setting| !setting.value.is_empty());
            steps.extend(named.map(|setting| (setting.value.trim().to_lowercase(), step)));
        }
        let bytes = |setting: Option<&Setting>, default: u64| {
            let Some(setting) = setting.filter(|setting| !setting.value.is_empty()) else {
                return Ok(default);
            };
            let why = match size(&setting.value) {
                Some(bytes) if bytes <= MAX_RECORD_BYTES as u64 => return Ok(bytes),
                Some(_) => format!("is more than a document has: {MAX_RECORD_BYTES} bytes at most"),
                None => "is no number of bytes".to_owned(),
            };
            let message = format!("{}: '{}' {why}", setting.key, setting.value);
            Err(wrong(file, setting.line, message))
        };
        let of_indexer = |key: &str| indexer.and_then(|section| section.get(key));
        let on_error = match of_indexer("on_file_field_error") {
            None => OnError::Ignore,
            Some(setting) => match setting.value.as_str() {
                "" | "ignore_field" => OnError::Ignore,
                "skip_document" => OnError::Skip,
                "fail_index" => OnError::Fail,
                other => {
                    let message = format!(
                        "on_file_field_error: '{other}' is none of ignore_field, skip_document and fail_index"
                    );
                    return Err(wrong(file, setting.line, message));
                }
            },
        };
        let unpacked = section.get("unpack_mysqlcompress_maxsize");
        let of_files = of_indexer("max_file_field_buffer");
        Ok(Self {
            steps,
            most_unpacked_bytes: bytes(unpacked, DEFAULT_UNPACKED_BYTES)?,
            most_file_bytes: bytes(of_files, DEFAULT_FILE_BYTES)?,
            on_error,
        })
    }

    /// The positions of these columns, for [`Unpacking::apply`].
    ///
    /// # Errors
    /// [`Error::Format`] if a column does not exist.
    pub fn places(&self, source: &str, names: &[String]) -> Result<Vec<UnpackedColumn>> {
        let place = |(wanted, step): &(String, Step)| {
            let at = names.iter().position(|name| name.to_lowercase() == *wanted);
            at.map(|at| UnpackedColumn { at, step: *step }).ok_or_else(|| {
                let key = step.key();
                let message = format!("sql_query selects no column '{wanted}', which {key} names");
                Error::format(source, message)
            })
        };
        self.steps.iter().map(place).collect()
    }

    /// Converts the texts of a document; `false` if the document is to be skipped.
    ///
    /// # Errors
    /// [`Error::Format`] if a file cannot be read and `on_file_field_error` is `fail_index`.
    pub fn apply(
        &self,
        source: &str,
        places: &[UnpackedColumn],
        document: &mut Document,
        sink: &mut dyn DocumentSink,
    ) -> Result<bool> {
        for UnpackedColumn { at, step } in places {
            let Some(cell) = document.cells.get_mut(*at).filter(|cell| !cell.is_empty()) else {
                continue;
            };
            let made = match step {
                Step::Zlib => inflated(cell, MAX_RECORD_BYTES as u64),
                Step::MysqlCompress => self.uncompressed(cell),
                Step::File => read_file(cell, self.most_file_bytes),
            };
            let why = match made {
                Ok(text) => {
                    *cell = text;
                    continue;
                }
                Err(why) => why,
            };
            cell.clear();
            let message = format!("{}: {}: {why}", document.place, step.key());
            match self.on_error {
                OnError::Fail if *step == Step::File => return Err(Error::format(source, message)),
                OnError::Skip if *step == Step::File => {
                    sink.warning(message);
                    return Ok(false);
                }
                // As in Sphinx: the text stays empty.
                _ => sink.warning(message),
            }
        }
        Ok(true)
    }

    /// The result of COMPRESS(): the length of the text, then a zlib stream.
    fn uncompressed(&self, packed: &[u8]) -> std::result::Result<Vec<u8>, String> {
        let Some((length, stream)) = packed.split_first_chunk::<4>() else {
            return Err("it is shorter than what COMPRESS() makes".to_owned());
        };
        let length = u64::from(u32::from_le_bytes(*length) & LENGTH_BITS);
        if length > self.most_unpacked_bytes {
            return Err(format!(
                "it has {length} bytes: raise unpack_mysqlcompress_maxsize, which is {}",
                self.most_unpacked_bytes
            ));
        }
        inflated(stream, length)
    }
}

/// A column with a conversion.
#[derive(Clone, Copy, Debug)]
pub(super) struct UnpackedColumn {
    at: usize,
    step: Step,
}

impl Step {
    fn key(self) -> &'static str {
        match self {
            Self::Zlib => "unpack_zlib",
            Self::MysqlCompress => "unpack_mysqlcompress",
            Self::File => "sql_file_field",
        }
    }
}

/// The text of a zlib stream with a limit of bytes.
fn inflated(stream: &[u8], most: u64) -> std::result::Result<Vec<u8>, String> {
    let mut text = Vec::new();
    let read = ZlibDecoder::new(stream).take(most + 1).read_to_end(&mut text);
    read.map_err(|error| format!("it cannot be unpacked: {error}"))?;
    match text.len() as u64 > most {
        true => Err(format!("it has more than {most} bytes")),
        false => Ok(text),
    }
}

fn read_file(name: &[u8], most: u64) -> std::result::Result<Vec<u8>, String> {
    let name = std::str::from_utf8(name).map_err(|_| "its name is not UTF-8".to_owned())?;
    let failed = |error: std::io::Error| format!("file '{name}' cannot be read: {error}");
    let no_file = || Err(format!("'{name}' is no file"));
    // Opening a pipe or a device may block or have effects. Checked again after opening, because the name may have been
    // reused.
    if !std::fs::metadata(name).map_err(failed)?.is_file() {
        return no_file();
    }
    let file = File::open(name).map_err(failed)?;
    if !file.metadata().map_err(failed)?.is_file() {
        return no_file();
    }
    let mut text = Vec::new();
    file.take(most + 1).read_to_end(&mut text).map_err(failed)?;
    match text.len() as u64 > most {
        true => {
            Err(format!("file '{name}' has more than {most} bytes: raise max_file_field_buffer"))
        }
        false => Ok(text),
    }
}

/// A number of bytes; a suffix `K` or `M` means KiB or MiB.
fn size(value: &str) -> Option<u64> {
    let value = value.trim().to_ascii_lowercase();
    let (digits, unit) = match value.as_bytes().last()? {
        b'k' => (value.get(..value.len() - 1)?, 1 << 10),
        b'm' => (value.get(..value.len() - 1)?, 1 << 20),
        _ => (value.as_str(), 1),
    };
    digits.trim().parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::{Compression, write::ZlibEncoder};

    use super::*;
    use crate::sphinx_conf::columns::Column;

    fn packed(text: &[u8]) -> Vec<u8> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn compressed(text: &[u8]) -> Vec<u8> {
        let mut made = u32::try_from(text.len()).unwrap().to_le_bytes().to_vec();
        made.extend(packed(text));
        made
    }

    fn unpacking(on_error: OnError) -> Unpacking {
        let steps = [("a", Step::Zlib), ("B", Step::MysqlCompress), ("c", Step::File)];
        Unpacking {
            steps: steps.iter().map(|(name, step)| (name.to_lowercase(), *step)).collect(),
            most_unpacked_bytes: 1_000,
            most_file_bytes: 8,
            on_error,
        }
    }

    #[derive(Default)]
    struct CollectedTexts(Vec<String>);

    impl DocumentSink for CollectedTexts {
        fn columns(&mut self, _: &[Column]) -> Result<()> {
            Ok(())
        }

        fn document(&mut self, _: &Document) -> Result<()> {
            Ok(())
        }

        fn warning(&mut self, message: String) {
            self.0.push(message);
        }
    }

    /// A document's texts, whether it is kept, and the warnings.
    fn made(on_error: OnError, cells: &[&[u8]]) -> Result<(Vec<Vec<u8>>, bool, Vec<String>)> {
        let names: Vec<String> = ["A", "b", "C"].iter().map(|name| (*name).to_owned()).collect();
        let unpacking = unpacking(on_error);
        let places = unpacking.places("source 's'", &names).unwrap();
        let cells = cells.iter().map(|cell| cell.to_vec()).collect();
        let mut document = Document { place: "document 7".to_owned(), number: Vec::new(), cells };
        let mut warnings = CollectedTexts::default();
        let kept = unpacking.apply("source 's'", &places, &mut document, &mut warnings)?;
        Ok((document.cells, kept, warnings.0))
    }

    #[test]
    fn texts_are_unpacked() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("text");
        std::fs::write(&path, "whale").unwrap();
        let name = path.to_str().unwrap().as_bytes();
        let (one, two) = (packed(b"coral reef"), compressed(b"deep sea"));
        let (cells, kept, warnings) = made(OnError::Fail, &[&one, &two, name]).unwrap();
        assert_eq!(cells, [b"coral reef".to_vec(), b"deep sea".to_vec(), b"whale".to_vec()]);
        assert!(kept && warnings.is_empty(), "{warnings:?}");
        let (cells, kept, warnings) = made(OnError::Fail, &[b"", b"", b""]).unwrap();
        assert!(cells.iter().all(Vec::is_empty) && kept && warnings.is_empty(), "{warnings:?}");
        std::fs::write(&path, "longer than eight").unwrap();
        let (cells, _, warnings) = made(OnError::Ignore, &[b"none", &two, name]).unwrap();
        assert_eq!(cells, [Vec::new(), b"deep sea".to_vec(), Vec::new()]);
        assert!(
            warnings[0].starts_with("document 7: unpack_zlib: it cannot be unpacked"),
            "{warnings:?}"
        );
        assert!(warnings[1].contains("raise max_file_field_buffer"), "{warnings:?}");
    }

    #[test]
    fn texts_that_cannot_be_unpacked_are_reported() {
        let long = compressed(&[b'x'; 1_001]);
        let mut lying = compressed(b"deep sea");
        lying[0] = 3;
        for (cell, part) in [
            (&long[..], "raise unpack_mysqlcompress_maxsize, which is 1000"),
            (&lying[..], "more than 3 bytes"),
            (&b"abc"[..], "shorter than"),
            (&b"\x05\0\0\0nothing"[..], "cannot be unpacked"),
        ] {
            let (cells, kept, warnings) = made(OnError::Fail, &[b"", cell, b""]).unwrap();
            assert!(cells[1].is_empty() && kept && warnings[0].contains(part), "{warnings:?}");
        }
        let missing = b"/nowhere/at/all";
        let error = made(OnError::Fail, &[b"", b"", missing]).unwrap_err().to_string();
        assert!(error.contains("sql_file_field: file '/nowhere/at/all'"), "{error}");
        let (_, kept, warnings) = made(OnError::Skip, &[b"", b"", missing]).unwrap();
        assert!(!kept && warnings.len() == 1, "{warnings:?}");
        let names = ["a".to_owned(), "c".to_owned()];
        let error = unpacking(OnError::Skip).places("source 's'", &names).unwrap_err().to_string();
        assert!(error.contains("no column 'b', which unpack_mysqlcompress names"), "{error}");
    }

    /// Opening a pipe without a writer would block for ever.
    #[cfg(unix)]
    #[test]
    fn pipes_and_folders_are_not_opened() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        let made_pipe = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made_pipe.success());
        for path in [pipe.as_path(), folder.path()] {
            let name = path.to_str().unwrap().to_owned();
            let (warnings, telling) = std::sync::mpsc::channel();
            std::thread::spawn(move || warnings.send(read_file(name.as_bytes(), 8)));
            let read = telling.recv_timeout(std::time::Duration::from_secs(20)).unwrap();
            assert!(read.is_err_and(|why| why.ends_with("is no file")), "{}", path.display());
        }
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!((size("16M"), size("2 k"), size("7")), (Some(16 << 20), Some(2048), Some(7)));
        assert_eq!((size(""), size("x"), size("99999999999999999999m")), (None, None, None));
    }
}
