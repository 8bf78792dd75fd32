//! The configuration files of the services.
//!
//! As near to the services' defaults as a single machine without guests allows; every line that departs says why. The
//! defaults for policies and quotas are the services' own: what an ordinary user may do is what he may do elsewhere.

use std::{fs, io};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, KeyPair};

use crate::service::Service;
use crate::site::{BROKER_USER, COMPUTE_HOST, REGION, SERVICE_PASSWORD, Site, Workers};

/// Why the files could not be written.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A file.
    #[error("cannot write {0}")]
    File(String, #[source] io::Error),
    /// The certificate of Octavia's authority.
    #[error("cannot make the certificate of Octavia's authority")]
    Certificate(#[from] rcgen::Error),
}

/// Writes all of them.
pub(crate) fn write(site: &Site, workers: Workers) -> Result<(), ConfigError> {
    let authority = KeyPair::generate()?;
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "amphorae");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let certificate = params.self_signed(&authority)?.pem();
    let worker_network = match workers {
        Workers::Working => "network_noop_driver",
        Workers::Failing => REAL_NETWORK,
    };
    for (name, text) in [
        ("keystone.conf", keystone(site)),
        ("neutron.conf", neutron(site)),
        ("ml2.ini", ml2()),
        ("placement/placement.conf", placement(site)),
        ("glance-api.conf", glance(site)),
        ("nova.conf", nova(site)),
        ("octavia-api.conf", octavia(site, REAL_NETWORK)),
        ("octavia-worker.conf", octavia(site, worker_network)),
        ("rabbitmq.conf", rabbitmq(site)),
        ("rabbitmq-plugins", "[].\n".to_owned()),
        ("authority.pem", certificate),
        ("authority.key", authority.serialize_pem()),
    ] {
        let path = site.path("etc").join(name);
        let write = || {
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder)?;
            }
            fs::write(&path, &text)
        };
        write().map_err(|error| ConfigError::File(path.display().to_string(), error))?;
    }
    Ok(())
}

/// How a service logs in to the others.
fn login(site: &Site, service: Service) -> String {
    format!(
        "auth_url = {url}\nauth_type = password\nusername = {user}\npassword = {SERVICE_PASSWORD}\n\
         project_name = service\nuser_domain_id = default\nproject_domain_id = default\nregion_name = {REGION}\n",
        url = site.url(Service::Identity),
        user = service.name(),
    )
}

/// How a service checks the tokens of those who call it.
fn tokens(site: &Site, service: Service) -> String {
    format!(
        "[keystone_authtoken]\nwww_authenticate_uri = {url}\nservice_token_roles_required = true\n{login}",
        url = site.url(Service::Identity),
        login = login(site, service),
    )
}

fn keystone(site: &Site) -> String {
    format!(
        "[database]\nconnection = {database}\n\
         [token]\nprovider = fernet\n\
         # Longer than anybody keeps a cloud: the harness logs in once.\n\
         expiration = 604800\n\
         [fernet_tokens]\nkey_repository = {tokens}\n\
         [credential]\nkey_repository = {credentials}\n\
         # A revoked token and a new role count at once.\n\
         [cache]\nenabled = false\n\
         # The cheapest that there is: nothing here is secret, and every project has a user.\n\
         [identity]\npassword_hash_rounds = 4\n",
        database = site.database_url("keystone"),
        tokens = site.text("keys/tokens"),
        credentials = site.text("keys/credentials"),
    )
}

fn neutron(site: &Site) -> String {
    format!(
        "[DEFAULT]\n\
         core_plugin = ml2\nservice_plugins = router,trunk\nauth_strategy = keystone\n\
         api_paste_config = {paste}\ntransport_url = {broker}\n\
         # Nova would be told of every port, and waits for none (see its file).\n\
         notify_nova_on_port_status_changes = false\nnotify_nova_on_port_data_changes = false\n\
         # There are no agents that could take these.\n\
         dhcp_agent_notification = false\nrouter_auto_schedule = false\nnetwork_auto_schedule = false\n\
         [oslo_concurrency]\nlock_path = {lock}\n\
         [database]\nconnection = {database}\n{tokens}",
        paste = installed(site, "etc/neutron/api-paste.ini"),
        broker = site.broker_url(),
        lock = site.text("locks"),
        database = site.database_url("neutron"),
        tokens = tokens(site, Service::Network),
    )
}

fn ml2() -> String {
    "[ml2]\n\
     type_drivers = local,flat,vxlan\ntenant_network_types = vxlan\n\
     # `test` binds ports (see COMPUTE_HOST); without `openvswitch` the trunk plug-in refuses to start.\n\
     mechanism_drivers = test,openvswitch\n\
     extension_drivers = port_security\n\
     [ml2_type_vxlan]\nvni_ranges = 1:1000\n\
     [ml2_type_flat]\nflat_networks = *\n"
        .to_owned()
}

fn placement(site: &Site) -> String {
    format!(
        "[api]\nauth_strategy = keystone\n[placement_database]\nconnection = {database}\n{tokens}",
        database = site.database_url("placement"),
        tokens = tokens(site, Service::Placement),
    )
}

fn glance(site: &Site) -> String {
    format!(
        "[DEFAULT]\nenabled_backends = files:file\nenabled_import_methods = []\n\
         [database]\nconnection = {database}\n\
         [glance_store]\ndefault_backend = files\n\
         [files]\nfilesystem_store_datadir = {images}\n\
         [os_glance_tasks_store]\nfilesystem_store_datadir = {images}/tasks\n\
         [os_glance_staging_store]\nfilesystem_store_datadir = {images}/staging\n\
         [paste_deploy]\nflavor = keystone\nconfig_file = {paste}\n{tokens}",
        database = site.database_url("glance"),
        images = site.text("images"),
        paste = installed(site, "etc/glance/glance-api-paste.ini"),
        tokens = tokens(site, Service::Image),
    )
}

fn nova(site: &Site) -> String {
    let login = login(site, Service::Compute);
    format!(
        "[DEFAULT]\n\
         host = {COMPUTE_HOST}\nmy_ip = 127.0.0.1\nstate_path = {state}\n\
         compute_driver = fake.FakeDriver\n\
         # Nobody plugs a cable, so nobody says that it is done.\n\
         vif_plugging_is_fatal = false\nvif_plugging_timeout = 0\n\
         transport_url = {broker}\n\
         [api]\nauth_strategy = keystone\n\
         [api_database]\nconnection = {api_database}\n\
         [database]\nconnection = {database}\n\
         [conductor]\nworkers = 1\n[scheduler]\nworkers = 1\n\
         [oslo_concurrency]\nlock_path = {lock}\n\
         [vnc]\nenabled = false\n[spice]\nenabled = false\n\
         [service_user]\nsend_service_user_token = true\n{login}\
         [glance]\n{login}[placement]\n{login}[neutron]\n{login}[cinder]\n{login}{tokens}",
        state = site.text("state"),
        broker = site.broker_url(),
        api_database = site.database_url("nova_api"),
        database = site.database_url("nova"),
        lock = site.text("locks"),
        tokens = tokens(site, Service::Compute),
    )
}

/// The network driver that makes real ports in Neutron. octavia-api needs it, so that a load balancer's address is a
/// port to which a floating IP can be attached. A worker with it fails to plug its amphora, which does not exist: every new
/// load balancer ends in ERROR.
const REAL_NETWORK: &str = "allowed_address_pairs_driver";

/// Octavia's API and its worker have a file each; they differ in the network driver.
///
/// The provider is `amphora` with drivers that do nothing where it would touch machines. The provider made for tests,
/// `noop_driver`, never reports that it is done, so its load balancers would be pending for ever.
fn octavia(site: &Site, network_driver: &str) -> String {
    format!(
        "[DEFAULT]\ntransport_url = {broker}\n\
         [api_settings]\nauth_strategy = keystone\napi_base_uri = {url}\n\
         enabled_provider_drivers = amphora:load balancers that carry no packet,octavia:the same by its old name\n\
         default_provider_driver = amphora\n\
         allow_tls_terminated_listeners = true\nallow_ping_health_monitors = true\n\
         [database]\nconnection = {database}\n\
         # Any reference to a certificate is taken for one.\n\
         [certificates]\ncert_manager = noop_cert_manager\ncert_generator = local_cert_generator\n\
         ca_certificate = {certificate}\nca_private_key = {key}\n\
         server_certs_key_passphrase = insecure-key-do-not-use-this-key\n\
         [haproxy_amphora]\nclient_cert = {certificate}\nserver_ca = {certificate}\n\
         [health_manager]\nheartbeat_key = bowline\nbind_ip = 127.0.0.1\n\
         [controller_worker]\nworkers = 1\n\
         amphora_driver = amphora_noop_driver\ncompute_driver = compute_noop_driver\n\
         network_driver = {network_driver}\nimage_driver = image_noop_driver\n\
         distributor_driver = distributor_noop_driver\nvolume_driver = volume_noop_driver\n\
         amp_flavor_id = 1\namp_image_tag = amphora\n\
         amp_boot_network_list = 00000000-0000-0000-0000-000000000001\nclient_ca = {certificate}\n\
         [task_flow]\nengine = parallel\nmax_workers = 2\njobboard_enabled = false\n\
         [oslo_messaging]\ntopic = octavia\nrpc_thread_pool_size = 2\n\
         [driver_agent]\nstatus_socket_path = {state}/status.sock\nstats_socket_path = {state}/stats.sock\n\
         get_socket_path = {state}/get.sock\n\
         [service_auth]\n{login}{tokens}",
        broker = site.broker_url(),
        url = site.url(Service::LoadBalancer),
        database = site.database_url("octavia"),
        certificate = site.text("etc/authority.pem"),
        key = site.text("etc/authority.key"),
        state = site.text("state"),
        login = login(site, Service::LoadBalancer),
        tokens = tokens(site, Service::LoadBalancer),
    )
}

fn rabbitmq(site: &Site) -> String {
    format!(
        "listeners.tcp.1 = 127.0.0.1:{port}\n\
         default_user = {BROKER_USER}\ndefault_pass = {BROKER_USER}\n\
         # It would stop taking messages where a disk is nearly full or memory short, and the services would hang.\n\
         disk_free_limit.absolute = 10MB\nvm_memory_high_watermark.absolute = 1GB\n\
         log.console = true\nlog.file = false\n",
        port = site.ports.broker,
    )
}

/// A file that came with the Python packages.
fn installed(site: &Site, name: &str) -> String {
    site.installation.environment().join(name).display().to_string()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::installation::Installation;

    fn written(workers: Workers) -> (tempfile::TempDir, Site) {
        let directory = tempfile::tempdir().unwrap();
        let site = Site::new(&Installation::wanted(), directory.path()).unwrap();
        write(&site, workers).unwrap();
        (directory, site)
    }

    fn read(site: &Site, name: &str) -> String {
        fs::read_to_string(site.path("etc").join(name)).unwrap()
    }

    #[test]
    fn no_section_is_written_twice_and_no_option_stands_outside() {
        let (_directory, site) = written(Workers::Working);
        for name in [
            "keystone.conf",
            "neutron.conf",
            "ml2.ini",
            "placement/placement.conf",
            "glance-api.conf",
            "nova.conf",
            "octavia-api.conf",
            "octavia-worker.conf",
        ] {
            let text = read(&site, name);
            assert!(text.starts_with('['), "{name}");
            let sections: Vec<&str> = text.lines().filter(|line| line.starts_with('[')).collect();
            let once: BTreeSet<&str> = sections.iter().copied().collect();
            assert_eq!(once.len(), sections.len(), "{name}: {sections:?}");
            for line in text.lines().filter(|line| !line.starts_with(['[', '#'])) {
                assert!(line.contains(" = ") && !line.starts_with(' '), "{name}: {line:?}");
            }
        }
    }

    #[test]
    fn a_failing_worker_differs_in_its_network_only() {
        let (_directory, working) = written(Workers::Working);
        let (_directory, failing) = written(Workers::Failing);
        let driver = |site: &Site, name: &str| {
            read(site, name)
                .lines()
                .find_map(|line| line.strip_prefix("network_driver = ").map(str::to_owned))
        };
        assert_eq!(
            driver(&working, "octavia-api.conf").as_deref(),
            Some(REAL_NETWORK)
        );
        assert_eq!(
            driver(&working, "octavia-worker.conf").as_deref(),
            Some("network_noop_driver")
        );
        assert_eq!(
            driver(&failing, "octavia-worker.conf").as_deref(),
            Some(REAL_NETWORK)
        );
    }
}
