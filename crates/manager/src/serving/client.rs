//! Who is at the other end of a connection, as far as is known before a request is read.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use tokio::time::Instant;

use super::authorities::Authority;
use super::places::{Origin, Place};
use super::subject::Subject;

/// How long the word of an authority about a certificate is kept. Checking a chain that was made to be hard takes
/// milliseconds, and a connection may send requests much faster.
const VERIFIED_TTL: Duration = Duration::from_secs(60);

/// The other end of a connection.
#[derive(Default)]
pub(super) struct Client {
    /// The certificate that it showed, with its chain.
    chain: Vec<CertificateDer<'static>>,
    /// What authorities said about it; there are two at most.
    verified: Mutex<Vec<Verified>>,
    /// None: this is no connection of the port.
    place: Option<Place>,
}

struct Verified {
    by: Arc<[u8]>,
    until: Instant,
    subject: Result<Subject, String>,
}

impl Client {
    /// A client that showed these certificates.
    pub(super) fn showing(chain: &[CertificateDer<'_>]) -> Self {
        Self {
            chain: chain.iter().map(|it| it.clone().into_owned()).collect(),
            ..Self::default()
        }
    }

    /// The same at a place among the connections.
    pub(super) fn at(self, place: Place) -> Self {
        Self {
            place: Some(place),
            ..self
        }
    }

    pub(super) fn origin(&self) -> Option<Origin> {
        self.place.as_ref().map(Place::origin)
    }

    pub(super) fn place(&self) -> Option<&Place> {
        self.place.as_ref()
    }

    /// The subject of the client's certificate, if it shows one and this authority vouches for it.
    pub(super) fn vouched_by(
        &self,
        authority: &Authority,
        verify: impl FnOnce(&CertificateDer<'_>, &[CertificateDer<'_>]) -> Result<Subject, String>,
    ) -> Result<Option<Subject>, String> {
        let Some((certificate, chain)) = self.chain.split_first() else {
            return Ok(None);
        };
        let now = Instant::now();
        let mut verified = self.verified.lock().unwrap_or_else(PoisonError::into_inner);
        let by = authority.pem();
        if let Some(known) = verified
            .iter()
            .find(|known| now < known.until && Arc::ptr_eq(&known.by, by))
        {
            return known.subject.clone().map(Some);
        }
        verified.retain(|known| now < known.until);
        let subject = verify(certificate, chain);
        verified.push(Verified {
            by: Arc::clone(by),
            until: now + VERIFIED_TTL,
            subject: subject.clone(),
        });
        subject.map(Some)
    }
}
