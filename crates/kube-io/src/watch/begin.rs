//! Where the next watch begins. Pure.

use super::open::Ended;
use crate::error::KubeError;

/// What is known of where the next watch begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum From {
    /// Nothing: a list has to say it.
    Nothing,
    /// It goes on where the last one was.
    Followed(String),
    /// It might, and a list is wanted all the same.
    Doubted(String),
}

/// Where the watch after this one begins, and what of its end has to be told and waited out. `is_listed`: it began right after a list.
pub(super) fn next(
    position: String,
    is_listed: bool,
    followed: Result<Ended, KubeError>,
) -> (From, Option<KubeError>) {
    match followed {
        Ok(Ended::InOrder | Ended::Mute) => (From::Followed(position), None),
        // Its server may have died, or its position may be no good.
        Ok(Ended::Silent) => (From::Doubted(position), None),
        // What expires at once after a list would only be listed again and again.
        Err(KubeError::Expired(_)) if !is_listed => (From::Nothing, None),
        // Nothing was missed if only the connection failed. After anything else, begin with a list.
        Err(error) if goes_on(&error) => (From::Followed(position), Some(error)),
        Err(error) => (From::Nothing, Some(error)),
    }
}

/// Whether a failure is the connection's alone.
pub(super) fn goes_on(error: &KubeError) -> bool {
    matches!(
        error,
        KubeError::Transport(_) | KubeError::Timeout | KubeError::Throttled { .. }
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watch_goes_on_where_nothing_was_missed() {
        let at = || "7".to_owned();
        let broken = || KubeError::Transport("reset".to_owned());
        let odd = || KubeError::Decode("no JSON".to_owned());
        let expired = || KubeError::Expired("too old".to_owned());
        let table = [
            (Ok(Ended::InOrder), From::Followed(at()), false),
            (Ok(Ended::Mute), From::Followed(at()), false),
            (Ok(Ended::Silent), From::Doubted(at()), false),
            (Err(broken()), From::Followed(at()), true),
            (Err(KubeError::Timeout), From::Followed(at()), true),
            (Err(odd()), From::Nothing, true),
        ];
        for (followed, from, is_told) in table {
            for is_listed in [false, true] {
                let told = followed.as_ref().err().filter(|_| is_told).cloned();
                let what = format!("{followed:?}");
                let next = next(at(), is_listed, followed.clone());
                assert_eq!(next, (from.clone(), told), "{what}");
            }
        }
        assert_eq!(next(at(), false, Err(expired())), (From::Nothing, None));
        assert_eq!(next(at(), true, Err(expired())), (From::Nothing, Some(expired())));
    }
}
