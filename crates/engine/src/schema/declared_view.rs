//! A stored view: SQL text that the engine does not read.

use serde::{Deserialize, Serialize};

/// What the names of the positions begin with that views are kept as.
const KEPT: &str = "#view.";

/// A view's definition, which is kept as the position of a source of the view's own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeclaredView {
    /// `CREATE … VIEW … AS …`, as the default `sql_mode` reads it. Its tables have their databases.
    pub statement: String,
    /// `character_set_client` when it was made.
    pub character_set_client: String,
    /// `collation_connection` when it was made.
    pub collation_connection: String,
    /// The source whose view it is; `None` of one that was made here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Why it cannot be read, if it cannot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

impl DeclaredView {
    /// The position that the view of this name, `database.view`, is kept as.
    pub fn position(name: &str) -> String {
        format!("{KEPT}{name}")
    }

    /// The name of the view that a position keeps; `None` if it keeps none.
    pub fn name_of(position: &str) -> Option<&str> {
        position.strip_prefix(KEPT)
    }

    /// The definition that was kept, if it is one.
    pub fn read(kept: &str) -> Option<Self> {
        serde_json::from_str(kept).ok()
    }

    /// The text that is kept.
    pub fn written(&self) -> String {
        let mut kept = serde_json::json!({
            "statement": self.statement,
            "character_set_client": self.character_set_client,
            "collation_connection": self.collation_connection,
        });
        let others = [("source", &self.source), ("refused", &self.refused)];
        for (name, other) in others {
            if let (Some(other), Some(fields)) = (other, kept.as_object_mut()) {
                fields.insert(name.to_owned(), other.as_str().into());
            }
        }
        kept.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read() {
        let local = DeclaredView {
            statement: "CREATE VIEW `v` AS select 'a\\'' AS `x`".to_owned(),
            character_set_client: "utf8mb4".to_owned(),
            collation_connection: "utf8mb4_0900_ai_ci".to_owned(),
            source: None,
            refused: None,
        };
        let followed = DeclaredView { source: Some("primary".to_owned()), ..local.clone() };
        let refused = DeclaredView { refused: Some("it's".to_owned()), ..followed.clone() };
        for view in [local, followed, refused] {
            assert_eq!(DeclaredView::read(&view.written()), Some(view));
        }
        assert_eq!(DeclaredView::read("7"), None);
        let position = DeclaredView::position("shop.v");
        assert_eq!(DeclaredView::name_of(&position), Some("shop.v"));
        assert_eq!(DeclaredView::name_of("#database.shop"), None);
    }
}
