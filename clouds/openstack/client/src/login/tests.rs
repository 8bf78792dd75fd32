use serde_json::{Value, json};

use super::*;

fn body(credentials: &Credentials) -> Value {
    serde_json::to_value(LoginBody(&Login::new(credentials).unwrap())).unwrap()["auth"].clone()
}

fn text(text: &str) -> String {
    text.to_owned()
}

fn secret(text: &str) -> Option<Secret> {
    Some(Secret::new(text))
}

/// A user with a password.
fn user() -> Credentials {
    Credentials {
        username: text("U"),
        password: secret("P"),
        ..Credentials::default()
    }
}

#[test]
fn a_domain_beside_a_project_is_that_of_user_and_project() {
    let auth = body(&Credentials {
        tenant_name: text("T"),
        domain_id: text("D"),
        ..user()
    });
    let domain = json!({"id": "D"});
    assert_eq!(auth["identity"]["password"]["user"]["domain"], domain);
    assert_eq!(auth["scope"], json!({"project": {"name": "T", "domain": domain}}));
    let auth = body(&Credentials {
        tenant_id: text("I"),
        domain_name: text("N"),
        user_domain_id: text("O"),
        ..user()
    });
    assert_eq!(auth["identity"]["password"]["user"]["domain"], json!({"id": "O"}));
    assert_eq!(auth["scope"], json!({"project": {"id": "I"}}));
}

#[test]
fn a_domain_without_a_project_is_the_scope_and_fills_nothing() {
    let domain = Credentials {
        domain_name: text("D"),
        ..user()
    };
    assert_eq!(Login::new(&domain).unwrap_err(), LoginError::NoUserDomain);
    let auth = body(&Credentials {
        user_domain_name: text("O"),
        ..domain
    });
    assert_eq!(auth["scope"], json!({"domain": {"name": "D"}}));
    let unscoped = body(&Credentials {
        user_id: text("I"),
        username: String::new(),
        ..user()
    });
    assert_eq!(unscoped.get("scope"), None);
    assert_eq!(
        unscoped["identity"]["password"]["user"],
        json!({"id": "I", "password": "P"})
    );
}

#[test]
fn an_application_credential_brings_its_own_scope() {
    let by_id = Credentials {
        application_credential_id: text("I"),
        application_credential_secret: secret("X"),
        tenant_name: text("T"),
        ..Credentials::default()
    };
    assert_eq!(
        body(&by_id),
        json!({"identity": {"methods": ["application_credential"], "application_credential": {"id": "I", "secret": "X"}}})
    );
    let by_name = Credentials {
        application_credential_id: String::new(),
        application_credential_name: text("N"),
        username: text("U"),
        domain_id: text("D"),
        ..by_id
    };
    assert_eq!(
        body(&by_name)["identity"]["application_credential"],
        json!({"name": "N", "secret": "X", "user": {"name": "U", "domain": {"id": "D"}}})
    );
    // A user's id needs no domain, and one that is given does no harm.
    let by_user_id = Credentials {
        username: String::new(),
        user_id: text("I"),
        ..by_name
    };
    assert_eq!(
        body(&by_user_id)["identity"]["application_credential"]["user"],
        json!({"id": "I"})
    );
}

#[test]
fn a_token_comes_before_all_else_and_needs_a_scope() {
    let token = Credentials {
        token: secret("K"),
        user_id: text("I"),
        user_domain_id: text("O"),
        ..user()
    };
    assert_eq!(Login::new(&token).unwrap_err(), LoginError::TokenWithoutScope);
    let auth = body(&Credentials {
        tenant_id: text("T"),
        ..token
    });
    assert_eq!(
        auth["identity"],
        json!({"methods": ["token"], "token": {"id": "K"}})
    );
}

#[test]
fn what_is_missing_or_too_much_is_an_error_before_any_request() {
    let table = [
        (Credentials::default(), LoginError::NoMethod),
        (
            Credentials {
                username: String::new(),
                ..user()
            },
            LoginError::NoUser,
        ),
        (
            Credentials {
                user_id: text("I"),
                ..user()
            },
            LoginError::TwoUsers,
        ),
        (user(), LoginError::NoUserDomain),
        (
            Credentials {
                user_domain_id: text("O"),
                user_domain_name: text("N"),
                ..user()
            },
            LoginError::TwoUserDomains,
        ),
        (
            Credentials {
                tenant_id: text("I"),
                domain_id: text("D"),
                domain_name: text("N"),
                ..user()
            },
            LoginError::TwoDomains,
        ),
        (
            Credentials {
                domain_id: text("D"),
                domain_name: text("N"),
                user_domain_id: text("O"),
                ..user()
            },
            LoginError::TwoDomains,
        ),
        (
            Credentials {
                trust_id: text("T"),
                trustee_id: text("I"),
                user_domain_id: text("O"),
                ..user()
            },
            LoginError::UserBesideTrustee,
        ),
        (
            Credentials {
                trust_id: text("T"),
                trustee_id: text("I"),
                username: String::new(),
                user_domain_id: text("O"),
                ..user()
            },
            LoginError::DomainOfUserId,
        ),
        (
            Credentials {
                user_id: text("I"),
                username: String::new(),
                domain_id: text("D"),
                tenant_id: text("T"),
                ..user()
            },
            LoginError::DomainOfUserId,
        ),
        (
            Credentials {
                tenant_name: text("T"),
                user_domain_id: text("O"),
                ..user()
            },
            LoginError::NoProjectDomain,
        ),
        (
            Credentials {
                application_credential_id: text("I"),
                ..Credentials::default()
            },
            LoginError::NoApplicationCredentialSecret,
        ),
    ];
    for (credentials, error) in table {
        assert_eq!(Login::new(&credentials).unwrap_err(), error, "{credentials:?}");
    }
}
