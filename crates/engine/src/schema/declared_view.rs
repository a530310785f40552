//! A stored view: SQL text that the engine does not interpret.

use serde::{Deserialize, Serialize};

/// Prefix of the source names under which views are stored.
const KEPT: &str = "#view.";

/// A view's definition. It is stored as the position of a source with the view's name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeclaredView {
    /// `CREATE … VIEW … AS …`, in the syntax of the default `sql_mode`, with qualified table names.
    pub statement: String,
    /// `character_set_client` when the view was created.
    pub character_set_client: String,
    /// `collation_connection` when the view was created.
    pub collation_connection: String,
    /// The source that the view was copied from; `None` if it was created here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Why the view cannot be read, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

impl DeclaredView {
    /// The source name under which the view `database.view` is stored.
    pub fn position(name: &str) -> String {
        format!("{KEPT}{name}")
    }

    /// The name of the view that a source name stands for; `None` if it is another source.
    pub fn name_of(position: &str) -> Option<&str> {
        position.strip_prefix(KEPT)
    }

    /// Parses a stored definition; `None` if it is malformed.
    pub fn read(kept: &str) -> Option<Self> {
        serde_json::from_str(kept).ok()
    }

    /// The text to store.
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
    fn a_written_view_is_read() {
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
