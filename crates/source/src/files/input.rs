//! A file or a stream as uncompressed bytes. Gzip (also with several members) and zstd (also with several frames) are
//! detected by their first bytes, whatever the file's name.

use std::{
    fs::File,
    io::{self, BufReader, Cursor, Read},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use flate2::bufread::MultiGzDecoder;

use crate::{Error, Result};

const BUFFER_BYTES: usize = 256 << 10;
const IDENTITY_BYTES: u64 = 64 << 10;

/// An input: a file, or a stream that can be read once.
pub struct Input {
    name: String,
    origin: Origin,
    consumed: Arc<AtomicU64>,
}

type Bytes = Box<dyn Read + Send>;

enum Origin {
    Path(PathBuf),
    Stream { head: Vec<u8>, rest: Option<Bytes> },
}

impl Input {
    /// A file by its path; `-` is the standard input.
    ///
    /// # Errors
    /// The first bytes of the standard input cannot be read.
    pub fn new(path: &str) -> Result<Self> {
        if path == "-" { Self::from_stream("-", io::stdin()) } else { Ok(Self::from_path(path)) }
    }

    /// A stream under a name for messages, plain or compressed. It can be read once.
    ///
    /// # Errors
    /// Its first bytes cannot be read or are of an unknown compression.
    pub fn from_stream(name: &str, stream: impl Read + Send + 'static) -> Result<Self> {
        let consumed = Arc::new(AtomicU64::new(0));
        let counted = Counted { inner: stream, count: Arc::clone(&consumed) };
        let rest = decompress(counted).map_err(|error| Error::io(name, error))?;
        let origin = Origin::Stream { head: Vec::new(), rest: Some(rest) };
        Ok(Self { name: name.to_owned(), origin, consumed })
    }

    fn from_path(path: &str) -> Self {
        let origin = Origin::Path(PathBuf::from(path));
        Self { name: path.to_owned(), origin, consumed: Arc::default() }
    }

    /// The name for messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The bytes on disk; `None` for a stream.
    pub fn total_bytes(&self) -> Option<u64> {
        match &self.origin {
            Origin::Path(path) => std::fs::metadata(path).ok().map(|found| found.len()),
            Origin::Stream { .. } => None,
        }
    }

    /// A counter of the bytes read so far, as they are on disk.
    pub fn consumed(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.consumed)
    }

    /// Identifies this file wherever it is stored: name, size and a hash of its first 64 KiB; `None` for a stream.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn identity(&self) -> Result<Option<String>> {
        let Origin::Path(path) = &self.origin else { return Ok(None) };
        file_identity(path).map(Some).map_err(|error| Error::io(&self.name, error))
    }

    /// At most `bytes` of the start, uncompressed. A later `open` still starts at the beginning.
    ///
    /// # Errors
    /// It cannot be read or its compressed bytes are damaged.
    pub fn sample(&mut self, bytes: usize) -> Result<Vec<u8>> {
        let read = match &mut self.origin {
            Origin::Path(path) => open_path(path, Arc::default())
                .and_then(|mut stream| read_up_to(&mut stream, Vec::new(), bytes)),
            Origin::Stream { head, rest } => sample_stream(head, rest, bytes),
        };
        read.map_err(|error| Error::io(&self.name, error))
    }

    /// The uncompressed bytes from the start.
    ///
    /// # Errors
    /// It cannot be opened, is of an unknown compression, or is a stream that was read before.
    pub fn open(&mut self) -> Result<Box<dyn Read + Send>> {
        self.consumed.store(0, Ordering::Relaxed);
        let opened = match &mut self.origin {
            Origin::Path(path) => open_path(path, Arc::clone(&self.consumed)),
            Origin::Stream { head, rest } => match rest.take() {
                Some(rest) => Ok(Box::new(Cursor::new(std::mem::take(head)).chain(rest)) as Bytes),
                None => Err(io::Error::other("this stream was read before and cannot be reread")),
            },
        };
        opened.map_err(|error| Error::io(&self.name, error))
    }
}

fn sample_stream(
    head: &mut Vec<u8>,
    rest: &mut Option<Bytes>,
    bytes: usize,
) -> io::Result<Vec<u8>> {
    if let Some(rest) = rest {
        *head = read_up_to(rest, std::mem::take(head), bytes)?;
    }
    Ok(head.get(..bytes).unwrap_or(head).to_vec())
}

fn read_up_to(stream: &mut Bytes, mut head: Vec<u8>, bytes: usize) -> io::Result<Vec<u8>> {
    let missing = bytes.saturating_sub(head.len());
    stream.take(missing as u64).read_to_end(&mut head)?;
    Ok(head)
}

fn open_path(path: &Path, count: Arc<AtomicU64>) -> io::Result<Bytes> {
    let inner = File::open(path)?;
    if inner.metadata()?.is_dir() {
        return Err(io::Error::other("is a directory: name the files in it"));
    }
    decompress(Counted { inner, count })
}

fn file_identity(path: &Path) -> io::Result<String> {
    let file = File::open(path)?;
    let size = file.metadata()?.len();
    let mut head = Vec::new();
    file.take(IDENTITY_BYTES).read_to_end(&mut head)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    Ok(format!("{name}:{size}:{:016x}", fnv1a(&head)))
}

/// FNV-1a with 64 bits. Stored identities need a hash that never changes.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

fn decompress(mut stream: impl Read + Send + 'static) -> io::Result<Bytes> {
    let mut magic = Vec::new();
    (&mut stream).take(6).read_to_end(&mut magic)?;
    let known = FilePacking::of(&magic);
    let whole = BufReader::with_capacity(BUFFER_BYTES, Cursor::new(magic).chain(stream));
    match known {
        FilePacking::Plain => Ok(Box::new(whole)),
        FilePacking::Gzip => Ok(Box::new(MultiGzDecoder::new(whole))),
        FilePacking::Zstd => Ok(Box::new(zstd::stream::read::Decoder::with_buffer(whole)?)),
        FilePacking::Other(name) => Err(io::Error::new(
            io::ErrorKind::Unsupported,
            format!("is packed with {name}: unpack it, or pack it with gzip or zstd"),
        )),
    }
}

/// The compression that a file's first bytes show.
enum FilePacking {
    Plain,
    Gzip,
    Zstd,
    Other(&'static str),
}

impl FilePacking {
    fn of(magic: &[u8]) -> Self {
        match magic {
            [0x1f, 0x8b, ..] => Self::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Self::Zstd,
            [b'B', b'Z', b'h', b'1'..=b'9', ..] => Self::Other("bzip2"),
            [0xfd, b'7', b'z', b'X', b'Z', 0] => Self::Other("xz"),
            [b'P', b'K', 3, 4, ..] => Self::Other("zip"),
            _ => Self::Plain,
        }
    }
}

struct Counted<R> {
    inner: R,
    count: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.count.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn read_stream(bytes: Vec<u8>) -> io::Result<Vec<u8>> {
        let mut all = Vec::new();
        decompress(Cursor::new(bytes))?.read_to_end(&mut all)?;
        Ok(all)
    }

    #[test]
    fn compression_is_detected_by_the_first_bytes() {
        let zstd = |bytes: &[u8]| zstd::encode_all(bytes, 1).unwrap();
        assert_eq!(read_stream(b"".to_vec()).unwrap(), b"");
        assert_eq!(read_stream(b"a\n".to_vec()).unwrap(), b"a\n");
        assert_eq!(read_stream([gzip(b"one\n"), gzip(b"two\n")].concat()).unwrap(), b"one\ntwo\n");
        assert_eq!(read_stream([zstd(b"one\n"), zstd(b"two\n")].concat()).unwrap(), b"one\ntwo\n");
        assert!(read_stream(b"BZh91AY".to_vec()).unwrap_err().to_string().contains("bzip2"));
    }

    #[test]
    fn cut_archives_are_errors() {
        let packed = gzip(&[b'x'; 9000]);
        assert!(read_stream(packed[..packed.len() - 5].to_vec()).is_err());
        let packed = zstd::encode_all(&[7_u8; 9000][..], 1).unwrap();
        assert!(read_stream(packed[..packed.len() - 2].to_vec()).is_err());
    }

    #[test]
    fn sampled_stream_is_read_completely_and_once() {
        let mut input = Input::from_stream("-", Cursor::new(b"0123456789".to_vec())).unwrap();
        assert_eq!(input.sample(4).unwrap(), b"0123");
        assert_eq!(input.sample(6).unwrap(), b"012345");
        assert_eq!(input.sample(2).unwrap(), b"01");
        let mut all = Vec::new();
        input.open().unwrap().read_to_end(&mut all).unwrap();
        assert_eq!(all, b"0123456789");
        assert!(input.open().is_err());
    }

    #[test]
    fn identity_follows_name_size_and_first_bytes() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.csv");
        let identity = || Input::new(path.to_str().unwrap()).unwrap().identity().unwrap().unwrap();
        std::fs::write(&path, "a\n1\n").unwrap();
        let first = identity();
        assert_eq!(first, identity());
        std::fs::write(&path, "a\n2\n").unwrap();
        assert_ne!(first, identity());
    }
}
