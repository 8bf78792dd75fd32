//! What clouds are asked once, for a person or a gauge.

use futures::future::{self, BoxFuture, Either, FutureExt as _};

use crate::CloudError;

/// A question to one cloud, which may answer with several things. Several clouds are asked one each, so that a cloud that fails or
/// hangs takes nothing from the answers of the others.
///
/// # Cancellation
///
/// May be dropped at any await: it only reads.
pub struct Question<'a, T> {
    /// The cloud, for texts; `None` where there is no other.
    cloud: Option<&'static str>,
    answer: BoxFuture<'a, Result<Vec<T>, CloudError>>,
}

impl<'a, T> Question<'a, T> {
    /// To the only cloud.
    pub fn new(answer: impl Future<Output = Result<Vec<T>, CloudError>> + Send + 'a) -> Self {
        Self {
            cloud: None,
            answer: answer.boxed(),
        }
    }

    /// To the cloud of this name, one of several.
    #[must_use]
    pub fn to(self, cloud: Option<&'static str>) -> Self {
        Self { cloud, ..self }
    }
}

/// A cloud that did not tell what it was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unanswered {
    /// The cloud, for texts; `None` where there is no other.
    pub cloud: Option<&'static str>,
    /// Why, without the cloud's name.
    pub why: CloudError,
}

impl Unanswered {
    /// Why, with the cloud's name.
    #[must_use]
    pub fn error(&self) -> CloudError {
        said_by(self.cloud, self.why.clone())
    }
}

/// Asks all at once; gives what was told, and who did not tell. A cloud that has not answered when `late` is over gets its error.
pub async fn ask_all<T, L: Future<Output = CloudError>>(
    questions: Vec<Question<'_, T>>,
    late: impl Fn() -> L,
) -> (Vec<T>, Vec<Unanswered>) {
    let answers = questions.into_iter().map(async |question| {
        let late = std::pin::pin!(late());
        let answer = match future::select(question.answer, late).await {
            Either::Left((answer, _)) => answer,
            Either::Right((error, _)) => Err(error),
        };
        let cloud = question.cloud;
        answer.map_err(|why| Unanswered { cloud, why })
    });
    let (mut told, mut failed) = (Vec::new(), Vec::new());
    for answer in future::join_all(answers).await {
        match answer {
            Ok(all) => told.extend(all),
            Err(unanswered) => failed.push(unanswered),
        }
    }
    (told, failed)
}

/// An error, with the name of the cloud that it is of.
pub(crate) fn said_by(cloud: Option<&str>, error: CloudError) -> CloudError {
    match cloud {
        Some(name) => error.context(name),
        None => error,
    }
}
