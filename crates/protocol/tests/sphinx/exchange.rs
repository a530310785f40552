//! Captured requests and replies of SphinxAPI.

use std::{fs, path::PathBuf};

use remora_protocol::sphinx::{HEAD_BYTES, Request, RequestError, RequestHead};

/// The bytes of one connection in both directions.
pub struct Exchange {
    pub name: String,
    pub request: Vec<u8>,
    pub reply: Vec<u8>,
}

/// A request with its head.
pub struct Sent<'e> {
    pub head: RequestHead,
    pub body: &'e [u8],
}

impl Sent<'_> {
    pub fn parse(&self) -> Result<Request<'_>, RequestError> {
        Request::parse(&self.head, self.body)
    }
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/sphinx/captured")
}

/// An exchange by its name.
pub fn exchange(name: &str) -> Exchange {
    let read = |end: &str| fs::read(folder().join(format!("{name}.{end}"))).unwrap();
    Exchange { name: name.to_owned(), request: read("request"), reply: read("reply") }
}

/// All exchanges, by name.
pub fn exchanges() -> Vec<Exchange> {
    let files = fs::read_dir(folder()).unwrap().map(|file| file.unwrap().file_name());
    let mut names: Vec<String> = files
        .filter_map(|name| name.to_str().unwrap().strip_suffix(".request").map(str::to_owned))
        .collect();
    names.sort();
    assert!(names.len() > 40, "captured exchanges are missing");
    names.iter().map(|name| exchange(name)).collect()
}

impl Exchange {
    /// The requests in order.
    pub fn sent(&self) -> Vec<Result<Sent<'_>, RequestError>> {
        let mut rest = &self.request[..];
        let mut sent = Vec::new();
        while let Some((head, after)) = rest.split_first_chunk::<HEAD_BYTES>() {
            let length = u32::from_be_bytes(head[4..].try_into().unwrap()) as usize;
            let (body, after) = after.split_at(length);
            sent.push(RequestHead::parse(*head).map(|head| Sent { head, body }));
            rest = after;
        }
        sent
    }

    /// The only request.
    pub fn only(&self) -> Sent<'_> {
        let mut sent = self.sent();
        assert_eq!(sent.len(), 1, "{}", self.name);
        sent.remove(0).unwrap()
    }

    /// The replies in order, with their heads.
    pub fn replies(&self) -> Vec<&[u8]> {
        let mut rest = &self.reply[..];
        let mut replies = Vec::new();
        while rest.len() >= HEAD_BYTES {
            let length = u32::from_be_bytes(rest[4..8].try_into().unwrap()) as usize;
            let (reply, after) = rest.split_at(HEAD_BYTES + length);
            replies.push(reply);
            rest = after;
        }
        assert!(rest.is_empty(), "{}", self.name);
        replies
    }
}
