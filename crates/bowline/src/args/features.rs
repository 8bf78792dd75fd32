//! Feature gates: which names are known, and which of them have an effect here.

/// A known gate.
#[derive(Debug, Clone, Copy)]
pub struct Gate {
    /// The name.
    pub name: &'static str,
    /// Whether it is on by default.
    pub default: bool,
    /// Whether it does something here; the others are accepted with a warning.
    pub has_effect: bool,
}

const fn gate(name: &'static str, default: bool, has_effect: bool) -> Gate {
    Gate {
        name,
        default,
        has_effect,
    }
}

/// The gates of this line of the framework that are known here.
pub const GATES: &[Gate] = &[
    gate("AllAlpha", false, true),
    gate("AllBeta", false, true),
    gate(
        "CloudControllerManagerWatchBasedRoutesReconciliation",
        false,
        true,
    ),
    gate("CloudControllerManagerWebhook", false, true),
    gate("ContextualLogging", true, true),
    gate("ControllerManagerReleaseLeaderElectionLockOnExit", false, false),
    gate("LoggingAlphaOptions", false, true),
    gate("LoggingBetaOptions", true, true),
    gate("NativeHistograms", false, false),
    gate("RemoteRequestHeaderUID", true, true),
];

/// Gates of the shared server library: accepted by the Go managers, without an effect that their users see.
const WITHOUT_EFFECT: &[&str] = &[
    "APIResponseCompression",
    "APIServerIdentity",
    "APIServingWithRoutine",
    "AllowParsingUserUIDFromCertAuth",
    "AllowUnsafeMalformedObjectDeletion",
    "CBORServingAndStorage",
    "ComponentFlagz",
    "ComponentStatusz",
    "ConcurrentWatchObjectDecode",
    "ConstrainedImpersonation",
    "CoordinatedLeaderElection",
    "DeclarativeValidationBeta",
    "DetectCacheInconsistency",
    "ListFromCacheSnapshot",
    "ManifestBasedAdmissionControlConfig",
    "OpenAPIEnums",
    "ShardedListAndWatch",
    "SizeBasedListCostEstimate",
    "StorageVersionAPI",
    "StorageVersionHash",
    "StructuredAuthenticationConfigurationEgressSelector",
    "StructuredAuthenticationConfigurationJWKSMetrics",
    "TokenRequestServiceAccountUIDValidation",
    "UnauthenticatedHTTP2DOSMitigation",
    "UnknownVersionInteroperabilityProxy",
    "WatchCacheInitializationPostStartHook",
    "WatchList",
];

/// Reads `Name=true`.
///
/// # Errors
///
/// What is wrong with it.
pub(super) fn assignment(text: &str) -> Result<(String, bool), String> {
    let (name, value) = text
        .split_once('=')
        .ok_or_else(|| format!("missing bool value for {text}"))?;
    let value = match value.trim() {
        "true" | "1" | "t" | "T" | "True" | "TRUE" => true,
        "false" | "0" | "f" | "F" | "False" | "FALSE" => false,
        other => return Err(format!("invalid value of {name}={other}")),
    };
    let name = name.trim();
    if GATES.iter().any(|gate| gate.name == name) || WITHOUT_EFFECT.contains(&name) {
        Ok((name.to_owned(), value))
    } else {
        Err(format!("unrecognized feature gate: {name}"))
    }
}

/// Whether setting the gate changes anything here.
#[must_use]
pub fn has_effect(name: &str) -> bool {
    GATES.iter().any(|gate| gate.name == name && gate.has_effect)
}

/// The state of a gate: the last assignment, else the group switch of its stage, else its default.
#[must_use]
pub fn is_on(assignments: &[(String, bool)], name: &str) -> bool {
    let assigned = |wanted: &str| {
        assignments
            .iter()
            .rev()
            .find(|(name, _)| name == wanted)
            .map(|(_, value)| *value)
    };
    let default = GATES.iter().any(|gate| gate.name == name && gate.default);
    // Alpha gates are off by default, beta gates of this list are on: so the default also tells the stage.
    let group = if default { "AllBeta" } else { "AllAlpha" };
    assigned(name).or_else(|| assigned(group)).unwrap_or(default)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_gates_are_refused_by_name() {
        assert_eq!(
            assignment("Nope=true").unwrap_err(),
            "unrecognized feature gate: Nope"
        );
        assert_eq!(assignment("WatchList=false"), Ok(("WatchList".into(), false)));
        assert!(!has_effect("WatchList"));
    }

    #[test]
    fn a_group_switch_yields_to_the_gate_s_own_assignment() {
        let set = |list: &[(&str, bool)]| -> Vec<(String, bool)> {
            list.iter().map(|(n, v)| ((*n).to_owned(), *v)).collect()
        };
        assert!(is_on(&[], "LoggingBetaOptions"));
        assert!(!is_on(&set(&[("AllBeta", false)]), "LoggingBetaOptions"));
        assert!(is_on(
            &set(&[("LoggingBetaOptions", true), ("AllBeta", false)]),
            "LoggingBetaOptions"
        ));
        assert!(is_on(&set(&[("AllAlpha", true)]), "LoggingAlphaOptions"));
    }
}
