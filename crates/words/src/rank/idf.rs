//! Inverse document frequency: rarer keywords count more.

/// How idf is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdfKind {
    /// Uses ln(N/n) instead of ln((N-n+1)/n), which is negative for keywords in more than half of the documents.
    pub is_plain: bool,
    /// Divides by the number of the query's keywords.
    pub is_divided: bool,
}

impl Default for IdfKind {
    fn default() -> Self {
        Self { is_plain: false, is_divided: true }
    }
}

/// The idf of a keyword in `documents` of `total` documents, for a query with `keywords` keywords, times the boost.
/// Each step is rounded to 32 bits, as in Sphinx.
pub fn idf(documents: u64, total: u64, keywords: usize, boost: f32, kind: IdfKind) -> f32 {
    if documents == 0 {
        return 0.0;
    }
    let total = total.max(documents);
    let of_all = (total as f32 + 1.0).ln();
    let ratio = if kind.is_plain {
        total as f32 / documents as f32
    } else {
        (total - documents + 1) as f32 / documents as f32
    };
    let mut idf = ratio.ln() / (2.0 * of_all);
    if kind.is_divided {
        idf /= keywords.max(1) as f32;
    }
    idf * boost
}
