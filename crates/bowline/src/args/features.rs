//! Feature gates: which names are known, and which of them have an effect here.

/// How far a feature has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// In the making, off by default.
    Alpha,
    /// On its way, mostly on by default.
    Beta,
    /// Here to stay.
    Stable,
    /// On its way out.
    Deprecated,
}

/// A known gate.
#[derive(Debug, Clone, Copy)]
pub struct Gate {
    /// The name.
    pub name: &'static str,
    /// How far the feature has come: `AllAlpha` and `AllBeta` go by it.
    pub stage: Stage,
    /// Whether it is on by default.
    pub default: bool,
    /// Whether it can have no other value than its default.
    pub is_locked: bool,
    /// Whether it does something here; the others are accepted with a warning.
    pub has_effect: bool,
}

const fn gate(name: &'static str, stage: Stage, default: bool) -> Gate {
    Gate {
        name,
        stage,
        default,
        is_locked: false,
        has_effect: false,
    }
}

const fn alpha(name: &'static str, default: bool) -> Gate {
    gate(name, Stage::Alpha, default)
}

const fn beta(name: &'static str, default: bool) -> Gate {
    gate(name, Stage::Beta, default)
}

const fn stable(name: &'static str, default: bool) -> Gate {
    gate(name, Stage::Stable, default)
}

const fn deprecated(name: &'static str, default: bool) -> Gate {
    gate(name, Stage::Deprecated, default)
}

impl Gate {
    const fn locked(mut self) -> Self {
        self.is_locked = true;
        self
    }

    const fn in_force(mut self) -> Self {
        self.has_effect = true;
        self
    }
}

/// Further labels of the cloud are kept true after a Node's initialisation too.
pub(super) const ADDITIONAL_LABELS: &str = "CloudNodeAdditionalLabelsReconciliation";

/// The gates of the framework's 1.38 line. Most belong to the library that its secure port is made of, and have no effect
/// that users of a cloud controller manager see.
pub const GATES: &[Gate] = &[
    beta("APIResponseCompression", true),
    beta("APIServerIdentity", true),
    alpha("APIServerWebhookAuthenticationToken", false),
    alpha("APIServingWithRoutine", false),
    alpha("AllAlpha", false).in_force(),
    beta("AllBeta", false).in_force(),
    beta("AllocatorPoolBufferCap", true),
    beta("AllowParsingUserUIDFromCertAuth", true),
    beta("AllowUnsafeMalformedObjectDeletion", true),
    alpha("CBORServingAndStorage", false),
    alpha("CloudControllerManagerWatchBasedRoutesReconciliation", false).in_force(),
    alpha("CloudControllerManagerWebhook", false).in_force(),
    alpha(ADDITIONAL_LABELS, false).in_force(),
    beta("ComponentFlagz", true),
    beta("ComponentStatusz", true),
    beta("ConcurrentWatchObjectDecode", true),
    alpha("ConditionalAuthorization", false),
    alpha("ConsistentGetFromCache", false),
    alpha("ConsistentListFromCacheSkipTimeoutFallback", false),
    beta("ConstrainedImpersonation", true),
    beta("ContextualLogging", true).in_force(),
    alpha("ControllerManagerReleaseLeaderElectionLockOnExit", false),
    beta("CoordinatedLeaderElection", false),
    stable("DeclarativeValidation", true).locked(),
    beta("DeclarativeValidationBeta", true),
    deprecated("DeclarativeValidationTakeover", false),
    beta("DetectCacheInconsistency", true),
    beta("EtcdRangeStream", true),
    beta("ExcludeAdmissionWebhookVirtualResources", true),
    deprecated("KMSv1", false),
    beta("ListFromCacheSnapshot", true),
    alpha("LoggingAlphaOptions", false).in_force(),
    beta("LoggingBetaOptions", true).in_force(),
    alpha("ManagedFieldsOptOut", false),
    beta("ManifestBasedAdmissionControlConfig", true),
    stable("MutatingAdmissionPolicy", true),
    beta("NativeHistograms", true),
    beta("OpenAPIEnums", true),
    beta("OpenAPIV2LazyBuild", true),
    beta("RemoteRequestHeaderUID", true).in_force(),
    alpha("RequestCostAggregation", false),
    deprecated("SeparateCacheWatchRPC", false).locked(),
    beta("ShardedListAndWatch", true),
    beta("SizeBasedListCostEstimate", true),
    alpha("StorageVersionAPI", false),
    beta("StorageVersionHash", true),
    beta("StructuredAuthenticationConfigurationEgressSelector", true),
    beta("StructuredAuthenticationConfigurationJWKSMetrics", true),
    beta("TokenRequestServiceAccountUIDValidation", true),
    beta("UnauthenticatedHTTP2DOSMitigation", true),
    beta("UnknownVersionInteroperabilityProxy", true),
    stable("WatchCacheInitializationPostStartHook", true),
    beta("WatchFromStorageWithoutPrevKV", true),
    beta("WatchList", true),
    beta("WatchListCompression", true),
    beta("WebhookRoundTripLoadBalancing", true),
];

/// Gates that the framework's 1.36 line still had: a manifest that names one goes on as it did.
const FORMER: &[Gate] = &[
    stable("APIServerTracing", true).locked(),
    stable("AnonymousAuthConfigurableEndpoints", true).locked(),
    stable("AuthorizeWithSelectors", true).locked(),
    stable("BtreeWatchCache", true).locked(),
    stable("ConsistentListFromCache", true).locked(),
    stable("ResilientWatchCacheInitialization", true).locked(),
    stable("RetryGenerateName", true).locked(),
    stable("StreamingCollectionEncodingToJSON", true).locked(),
    stable("StreamingCollectionEncodingToProtobuf", true).locked(),
    stable("StructuredAuthenticationConfiguration", true).locked(),
];

/// Gates of proposals that no release of the framework has yet.
const AHEAD: &[Gate] = &[alpha("CloudProviderNodeOwnership", false).in_force()];

fn find(name: &str) -> Option<&'static Gate> {
    GATES
        .iter()
        .chain(FORMER)
        .chain(AHEAD)
        .find(|gate| gate.name == name)
}

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
    let gate = find(name).ok_or_else(|| format!("unrecognized feature gate: {name}"))?;
    if gate.is_locked && value != gate.default {
        return Err(format!(
            "cannot set feature gate {name} to {value}, feature is locked to {}",
            gate.default
        ));
    }
    Ok((name.to_owned(), value))
}

/// Whether setting the gate changes anything here.
pub fn has_effect(name: &str) -> bool {
    find(name).is_some_and(|gate| gate.has_effect)
}

/// The state of a gate: the last assignment, else the group switch of its stage, else its default.
pub fn is_on(assignments: &[(String, bool)], name: &str) -> bool {
    let assigned = |wanted: &str| {
        assignments
            .iter()
            .rev()
            .find(|(name, _)| name == wanted)
            .map(|(_, value)| *value)
    };
    let Some(gate) = find(name) else {
        return false;
    };
    let group = match gate.stage {
        Stage::Alpha => assigned("AllAlpha"),
        Stage::Beta => assigned("AllBeta"),
        Stage::Stable | Stage::Deprecated => None,
    };
    assigned(name).or(group).unwrap_or(gate.default)
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
        // The framework's 1.37 line had it, locked; that of 1.38 refuses it.
        assert_eq!(
            assignment("AggregatedDiscoveryRemoveBetaType=true").unwrap_err(),
            "unrecognized feature gate: AggregatedDiscoveryRemoveBetaType"
        );
        assert_eq!(assignment("WatchList=false"), Ok(("WatchList".into(), false)));
        assert!(!has_effect("WatchList"));
    }

    #[test]
    fn a_locked_gate_keeps_its_default() {
        assert!(assignment("BtreeWatchCache=true").is_ok());
        assert_eq!(
            assignment("BtreeWatchCache=false").unwrap_err(),
            "cannot set feature gate BtreeWatchCache to false, feature is locked to true"
        );
    }

    #[test]
    fn what_the_former_line_accepted_is_accepted_with_the_warning() {
        // Gone with 1.37, or fixed to one value.
        for text in [
            "BtreeWatchCache=true",
            "StructuredAuthenticationConfiguration=true",
            "WatchCacheInitializationPostStartHook=false",
            "DeclarativeValidationTakeover=true",
        ] {
            let (name, _) = assignment(text).unwrap();
            assert!(!has_effect(&name), "{name} would be given without a warning");
        }
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
