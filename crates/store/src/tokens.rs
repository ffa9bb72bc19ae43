//! Access tokens: made, checked, listed, revoked. Of a secret only its SHA-256 is kept.

use crate::{Accounts, Error};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use std::fmt;

/// What a principal may do; each may all that the one before may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Look at everything.
    Viewer,
    /// Run and change things.
    Operator,
    /// Manage tokens and settings.
    Admin,
}

impl Role {
    /// `viewer`, `operator` or `admin`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Admin => "admin",
        }
    }

    /// The role of a name; `None` for any other text.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        [Self::Viewer, Self::Operator, Self::Admin].into_iter().find(|role| role.name() == name)
    }
}

/// Who a secret belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    /// Id of the token.
    pub token_id: String,
    /// Name that the token was given.
    pub name: String,
    /// What it may do.
    pub role: Role,
}

/// A token that was just made: the one time that its secret is seen.
#[derive(Clone, PartialEq, Eq)]
pub struct NewToken {
    /// Id, 16 hexadecimal digits.
    pub id: String,
    /// `lks_` and 43 characters of base64url.
    pub secret: String,
}

impl fmt::Debug for NewToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewToken").field("id", &self.id).finish_non_exhaustive()
    }
}

/// A token as lists show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// Id.
    pub id: String,
    /// Name.
    pub name: String,
    /// What it may do.
    pub role: Role,
    /// Made, epoch ms.
    pub created_ms: i64,
    /// Worth nothing from then on, epoch ms; `None`: until it is revoked.
    pub expires_ms: Option<i64>,
    /// Used last, epoch ms, to the minute; `None`: never.
    pub last_used_ms: Option<i64>,
}

const PREFIX: &str = "lks_";
/// Prefix and 32 bytes in base64url.
const SECRET_LEN: usize = PREFIX.len() + 43;
/// A token in constant use is written this often.
const NOTE_USE_EVERY_MS: i64 = 60_000;

type Row = (String, String, String, i64, Option<i64>, Option<i64>);

impl Accounts {
    /// Makes a token; its secret is in the answer and nowhere else.
    ///
    /// # Errors
    /// When there is no randomness or the database cannot be written.
    pub async fn create_token(
        &self,
        name: &str,
        role: Role,
        expires_ms: Option<i64>,
        now_ms: i64,
    ) -> Result<NewToken, Error> {
        let mut random = [0; 40];
        let filled = getrandom::fill(&mut random);
        filled.map_err(|error| Error::NoRandomness { name: name.to_owned(), message: error.to_string() })?;
        let (id, secret) = random.split_at(8);
        let id: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
        let secret = format!("{PREFIX}{}", BASE64_URL_SAFE_NO_PAD.encode(secret));
        let insert = "INSERT INTO tokens (id, name, role, secret_sha256, created_ms, expires_ms) \
                      VALUES ($1, $2, $3, $4, $5, $6)";
        let query = sqlx::query(insert).bind(&id).bind(name).bind(role.name()).bind(digest(&secret));
        let done = query.bind(now_ms).bind(expires_ms).execute(&self.database).await;
        done.map_err(self.failed("creating the token", name))?;
        Ok(NewToken { id, secret })
    }

    /// The principal of a secret; `None` when there is none, or when it has expired by `now_ms`.
    /// Looked up by digest: how long it takes says nothing about a secret that is nearly right.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn verify(&self, secret: &str, now_ms: i64) -> Result<Option<Principal>, Error> {
        if secret.len() != SECRET_LEN || !secret.starts_with(PREFIX) {
            return Ok(None);
        }
        let select = "SELECT id, name, role, created_ms, expires_ms, last_used_ms FROM tokens WHERE secret_sha256 = $1";
        let found = sqlx::query_as::<_, Row>(select).bind(digest(secret)).fetch_optional(&self.database).await;
        let found = found.map_err(self.failed("looking up", "a token"))?;
        let Some(token) = found.and_then(token).filter(|t| t.expires_ms.is_none_or(|at| now_ms < at)) else {
            return Ok(None);
        };
        if token.last_used_ms.is_none_or(|at| now_ms >= at.saturating_add(NOTE_USE_EVERY_MS)) {
            self.note_use(&token.id, now_ms).await;
        }
        Ok(Some(Principal { token_id: token.id, name: token.name, role: token.role }))
    }

    async fn note_use(&self, id: &str, now_ms: i64) {
        let update = sqlx::query("UPDATE tokens SET last_used_ms = $1 WHERE id = $2").bind(now_ms).bind(id);
        // A full disk locks nobody out: the note is made with a later use.
        let _ = update.execute(&self.database).await;
    }

    /// All tokens, the oldest first; never their secrets.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn tokens(&self) -> Result<Vec<Token>, Error> {
        let select = "SELECT id, name, role, created_ms, expires_ms, last_used_ms FROM tokens ORDER BY created_ms, id";
        let rows = sqlx::query_as::<_, Row>(select).fetch_all(&self.database).await;
        Ok(rows.map_err(self.failed("listing", "the tokens"))?.into_iter().filter_map(token).collect())
    }

    /// Makes a token worth nothing, at once and for good; says whether there was one.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub async fn revoke(&self, id: &str) -> Result<bool, Error> {
        let done = sqlx::query("DELETE FROM tokens WHERE id = $1").bind(id).execute(&self.database).await;
        Ok(done.map_err(self.failed("revoking the token", id))?.rows_affected() > 0)
    }
}

/// `None` for a role that this program does not know: such a token may nothing.
fn token((id, name, role, created_ms, expires_ms, last_used_ms): Row) -> Option<Token> {
    Some(Token { id, name, role: Role::of_name(&role)?, created_ms, expires_ms, last_used_ms })
}

fn digest(secret: &str) -> Vec<u8> {
    Sha256::digest(secret).to_vec()
}
