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

/// Asks all at once; gives what was told, and what the clouds answered that failed, each by its name. A cloud that has not answered
/// when `late` is over gets its error.
pub async fn ask_all<T, L: Future<Output = CloudError>>(
    questions: Vec<Question<'_, T>>,
    late: impl Fn() -> L,
) -> (Vec<T>, Vec<CloudError>) {
    let answers = questions.into_iter().map(async |question| {
        let late = std::pin::pin!(late());
        let answer = match future::select(question.answer, late).await {
            Either::Left((answer, _)) => answer,
            Either::Right((error, _)) => Err(error),
        };
        answer.map_err(|error| said_by(question.cloud, error))
    });
    let (mut told, mut failed) = (Vec::new(), Vec::new());
    for answer in future::join_all(answers).await {
        match answer {
            Ok(all) => told.extend(all),
            Err(error) => failed.push(error),
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
