//! XA transactions: the source logs their rows at PREPARE, but they take effect at COMMIT, possibly much later. Until
//! then they are kept here.
//!
//! The PREPARE of a MySQL XA transaction joins the applied set only with its COMMIT, so the source sends it again after
//! a restart. MariaDB's GTID sets cannot leave a transaction out: a prepared transaction is lost when the stream ends,
//! and its COMMIT is then an error.

use std::collections::VecDeque;

use super::SourceEvent;
use crate::mysql::{
    bytes::{Reader, UnexpectedEnd},
    gtid::Gtid,
};

/// The most bytes of rows of all prepared transactions. Beyond that, following is refused.
const MAX_KEPT_BYTES: usize = 256 << 20;

/// The identifier of an XA transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Xid {
    pub format: u32,
    pub global: Vec<u8>,
    pub branch: Vec<u8>,
}

/// Transactions that are prepared and not yet completed.
#[derive(Debug, Default)]
pub struct Prepared {
    transactions: Vec<(Xid, PreparedTransaction)>,
    bytes: usize,
}

/// The changes of a prepared transaction.
#[derive(Debug, Default)]
pub struct PreparedTransaction {
    /// The GTID of its prepare.
    pub gtid: Option<Gtid>,
    /// The commit time of the prepare, in microseconds since 1970.
    pub committed_at_us: i64,
    /// Its table maps and rows.
    pub events: VecDeque<SourceEvent>,
    bytes: usize,
}

impl PreparedTransaction {
    /// A transaction without rows so far.
    pub fn new(gtid: Option<Gtid>, committed_at_us: i64) -> Self {
        Self { gtid, committed_at_us, ..Self::default() }
    }

    /// Adds an event.
    pub fn push(&mut self, event: SourceEvent) {
        if let SourceEvent::Rows { body, .. } = &event {
            self.bytes = self.bytes.saturating_add(body.len());
        }
        self.events.push_back(event);
    }

    /// Whether its rows exceed the limit.
    pub fn is_too_large(&self) -> bool {
        self.bytes > MAX_KEPT_BYTES
    }
}

impl Prepared {
    /// Keeps a transaction; false if there is no room.
    pub fn keep(&mut self, xid: Xid, transaction: PreparedTransaction) -> bool {
        self.take(&xid);
        self.bytes = self.bytes.saturating_add(transaction.bytes);
        self.transactions.push((xid, transaction));
        self.bytes <= MAX_KEPT_BYTES
    }

    /// Removes a transaction that is completed.
    pub fn take(&mut self, xid: &Xid) -> Option<PreparedTransaction> {
        let at = self.transactions.iter().position(|(kept, _)| kept == xid)?;
        let (_, transaction) = self.transactions.swap_remove(at);
        self.bytes = self.bytes.saturating_sub(transaction.bytes);
        Some(transaction)
    }
}

impl Xid {
    /// Reads the body of an XA_PREPARE event: whether it commits in one phase, and its XID.
    ///
    /// ```text
    /// one phase u8 | format u32 | length of global part u32 | length of branch part u32 | both
    /// ```
    pub fn parse_prepare(body: &[u8]) -> Result<(bool, Self), UnexpectedEnd> {
        let mut reader = Reader::new(body);
        let one_phase = reader.u8()? != 0;
        let format = reader.u32()?;
        let length = |reader: &mut Reader<'_>| -> Result<usize, UnexpectedEnd> {
            usize::try_from(reader.u32()?).map_err(|_| UnexpectedEnd)
        };
        let (global, branch) = (length(&mut reader)?, length(&mut reader)?);
        let (global, branch) = (reader.bytes(global)?.to_vec(), reader.bytes(branch)?.to_vec());
        Ok((one_phase, Self { format, global, branch }))
    }

    /// Reads `X'global',X'branch',format`, the servers' own way of writing it in a query.
    pub fn parse_text(text: &str) -> Option<Self> {
        let mut parts = text.split(',').map(str::trim);
        let global = hexadecimal(parts.next()?)?;
        let branch = hexadecimal(parts.next()?)?;
        let format = parts.next()?.split_whitespace().next()?.parse().ok()?;
        Some(Self { format, global, branch })
    }
}

fn hexadecimal(text: &str) -> Option<Vec<u8>> {
    let digits = text.strip_prefix(['X', 'x'])?.strip_prefix('\'')?.strip_suffix('\'')?;
    let digit = |byte: u8| (byte as char).to_digit(16);
    let pairs = digits.as_bytes().chunks(2);
    pairs
        .map(|pair| match pair {
            [high, low] => u8::try_from(digit(*high)? << 4 | digit(*low)?).ok(),
            _ => None,
        })
        .collect()
}

impl std::fmt::Display for Xid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (global, branch) = (self.global.escape_ascii(), self.branch.escape_ascii());
        write!(f, "'{global}','{branch}',{}", self.format)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn xa_transaction_is_found_by_either_form_of_its_id() {
        let mut body = vec![0];
        body.extend(1_u32.to_le_bytes());
        body.extend(2_u32.to_le_bytes());
        body.extend(1_u32.to_le_bytes());
        body.extend(b"x1b");
        let (one_phase, prepared) = Xid::parse_prepare(&body).unwrap();
        assert!(!one_phase);
        let named = Xid::parse_text("X'7831',X'62',1").unwrap();
        assert_eq!(prepared, named);
        let mut kept = Prepared::default();
        assert!(kept.keep(prepared, PreparedTransaction::default()));
        assert!(kept.take(&Xid { format: 2, ..named.clone() }).is_none());
        assert!(kept.take(&named).is_some());
        for wrong in ["", "X'78'", "X'7',X'',1", "x1,b,1", "X'78',X'',y"] {
            assert!(Xid::parse_text(wrong).is_none(), "{wrong}");
        }
    }
}
