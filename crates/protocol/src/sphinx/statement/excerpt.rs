//! Converts a request for excerpts to CALL SNIPPETS.

use super::{Refused, Result, TableShape, quote};
use crate::sphinx::ExcerptRequest;

/// The bits that correspond to an option of CALL SNIPPETS.
const OPTIONS: [(u32, &str); 7] = [
    (2, "exact_phrase"),
    (8, "use_boundaries"),
    (16, "weight_order"),
    (32, "query_mode"),
    (64, "force_all_words"),
    (256, "allow_empty"),
    (512, "emit_zones"),
];
const SINGLE_PASSAGE: u32 = 4;
/// The bits that would make the server read files.
const FILES: [(u32, &str); 2] = [(128, "load_files"), (1024, "load_files_scattered")];
/// All bits that exist. The first, which removes spaces, has no effect here.
const KNOWN: u32 = 0x7FF;

/// The statement that gives an excerpt of each text, in their order, by the words of this table.
///
/// # Errors
/// A sentence for what is asked of files and for unknown bits.
pub fn excerpts(request: &ExcerptRequest<'_>, shape: &TableShape) -> Result<String> {
    if let Some((_, name)) = FILES.iter().find(|(bit, _)| request.flags & bit != 0) {
        return Err(Refused::new(format!("{name} is not answered: send the texts")));
    }
    if request.flags & !KNOWN != 0 {
        return Err(Refused::new(format!("unknown flags of excerpts ({:#x})", request.flags)));
    }
    let texts: Vec<String> = request.texts.iter().map(|text| quote::text(text)).collect();
    let mut options = Vec::new();
    for (name, text) in [
        ("before_match", &request.before_match),
        ("after_match", &request.after_match),
        ("chunk_separator", &request.chunk_separator),
        ("html_strip_mode", &request.html_strip_mode),
    ] {
        options.push(format!("{} AS {name}", quote::text(text)));
    }
    let boundary = request.passage_boundary.to_lowercase();
    if ["sentence", "paragraph", "zone"].contains(&&*boundary) {
        options.push(format!("'{boundary}' AS passage_boundary"));
    }
    let is_single = request.flags & SINGLE_PASSAGE != 0;
    let passages = if is_single { 1 } else { request.limit_passages };
    for (name, number) in [
        ("limit", request.limit),
        ("around", request.around),
        ("limit_passages", passages),
        ("limit_words", request.limit_words),
        ("start_passage_id", request.start_passage_id),
    ] {
        options.push(format!("{number} AS {name}"));
    }
    let set = OPTIONS.iter().filter(|(bit, _)| request.flags & bit != 0);
    options.extend(set.map(|(_, name)| format!("1 AS {name}")));
    Ok(format!(
        "CALL SNIPPETS(({}), {}, {}, {})",
        texts.join(", "),
        quote::text(&shape.named()),
        quote::text(&request.words),
        options.join(", ")
    ))
}
