//! A connection to the server of a home that follows the server when it moves.
use crate::{Client, ClientError, Home, Result, http};
use std::sync::{Mutex, PoisonError};

/// Keeps the client while it answers, and looks the server up anew once it does not: a restart may change its port.
pub(crate) struct Link {
    home: Home,
    agent: ureq::Agent,
    client: Mutex<Option<Client>>,
}

impl Link {
    pub fn new(home: Home) -> Self {
        Self { home, agent: http::agent(), client: Mutex::new(None) }
    }

    /// One attempt of one call.
    pub fn call<T>(&self, call: impl FnOnce(&Client) -> Result<T>) -> Result<T> {
        let answer = self.client().and_then(|client| call(&client));
        if let Err(ClientError::Unreachable { .. } | ClientError::BadAnswer { .. }) = &answer {
            *self.slot() = None;
        }
        answer
    }

    fn client(&self) -> Result<Client> {
        let mut slot = self.slot();
        if let Some(client) = &*slot {
            return Ok(client.clone());
        }
        let client = Client::with_agent(&self.home, self.agent.clone())?;
        Ok(slot.insert(client).clone())
    }

    fn slot(&self) -> std::sync::MutexGuard<'_, Option<Client>> {
        self.client.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
