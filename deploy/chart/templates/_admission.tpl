{{/* Written by `cargo xtask generate`. */}}
{{- define "bowline.admission.cloudscale.values" }}
# A fault in a policy must not keep Services from anybody.
failurePolicy: Ignore
matchConstraints:
  resourceRules:
    - apiGroups: [""]
      apiVersions: [v1]
      operations: [CREATE, UPDATE]
      resources: [services]
matchConditions:
  - name: load-balancer
    expression: |-
      has(object.spec.type) && object.spec.type == 'LoadBalancer'
  - name: class
    expression: |-
      {{ include "bowline.admission.class" . }}
  - name: not-being-deleted
    expression: |-
      !has(object.metadata.deletionTimestamp)
variables:
  - name: annotations
    expression: |-
      has(object.metadata.annotations) ? object.metadata.annotations : {}
  - name: isNew
    expression: |-
      oldObject == null || !has(oldObject.spec.type) || oldObject.spec.type != 'LoadBalancer'
  - name: before
    expression: |-
      !variables.isNew && has(oldObject.metadata.annotations) ? oldObject.metadata.annotations : {}
  - name: touched
    expression: |-
      variables.annotations.filter(k, !(k in variables.before) || variables.before[k] != variables.annotations[k])
  - name: known
    expression: |-
      [
        'k8s.cloudscale.ch/loadbalancer-uuid',
        'k8s.cloudscale.ch/loadbalancer-config-version',
        'k8s.cloudscale.ch/loadbalancer-name',
        'k8s.cloudscale.ch/loadbalancer-flavor',
        'k8s.cloudscale.ch/loadbalancer-zone',
        'k8s.cloudscale.ch/loadbalancer-vip-addresses',
        'k8s.cloudscale.ch/loadbalancer-floating-ips',
        'k8s.cloudscale.ch/loadbalancer-pool-algorithm',
        'k8s.cloudscale.ch/loadbalancer-pool-protocol',
        'k8s.cloudscale.ch/loadbalancer-listener-protocol',
        'k8s.cloudscale.ch/loadbalancer-listener-allowed-cidrs',
        'k8s.cloudscale.ch/loadbalancer-listener-allowed-subnets',
        'k8s.cloudscale.ch/loadbalancer-timeout-client-data-ms',
        'k8s.cloudscale.ch/loadbalancer-timeout-member-connect-ms',
        'k8s.cloudscale.ch/loadbalancer-timeout-member-data-ms',
        'k8s.cloudscale.ch/loadbalancer-health-monitor-type',
        'k8s.cloudscale.ch/loadbalancer-health-monitor-http',
        'k8s.cloudscale.ch/loadbalancer-health-monitor-delay-s',
        'k8s.cloudscale.ch/loadbalancer-health-monitor-timeout-s',
        'k8s.cloudscale.ch/loadbalancer-health-monitor-up-threshold',
        'k8s.cloudscale.ch/loadbalancer-health-monitor-down-threshold',
        'k8s.cloudscale.ch/loadbalancer-force-hostname',
        'k8s.cloudscale.ch/loadbalancer-ip-mode',
        'k8s.cloudscale.ch/loadbalancer-node-selector'
      ]
  - name: unknown
    expression: |-
      variables.touched.filter(k, !(k in variables.known) && (k.startsWith('k8s.cloudscale.ch/loadbalancer-')
        || k.startsWith('k8s.cloudscale.ch/') && variables.known.exists(n, (n.startsWith(k) && size(k) > 18 || k.startsWith(n) || n.lowerAscii().replace('-', '').replace('_', '') == k.lowerAscii().replace('-', '').replace('_', '') || size(n) - size(k) in [-1, 0, 1] && [18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60].exists(p, p < size(n) && p < size(k) && n.substring(0, p) == k.substring(0, p) && (n.substring(p + 1) == k.substring(p) || n.substring(p) == k.substring(p + 1) || n.substring(p + 1) == k.substring(p + 1) || p + 1 < size(n) && p + 1 < size(k) && n.substring(p + 2) == k.substring(p + 2) && n.charAt(p) == k.charAt(p + 1) && n.charAt(p + 1) == k.charAt(p)))) || n.endsWith('-' + k.substring(k.indexOf('/') + 1)))
        || variables.known.exists(n, k.contains('cloudscale') && k.endsWith(n.substring(n.indexOf('/'))))))
validations:
  - expression: |-
      size(variables.unknown) == 0
    message: |-
      an annotation that cloudscale.ch does not know has no effect
    messageExpression: |-
      'annotations that cloudscale.ch does not know have no effect: ' + variables.unknown.map(k,
        [variables.known.filter(n, !(n in ['k8s.cloudscale.ch/loadbalancer-uuid', 'k8s.cloudscale.ch/loadbalancer-config-version']) && ((n.startsWith(k) && size(k) > 18 || k.startsWith(n) || n.lowerAscii().replace('-', '').replace('_', '') == k.lowerAscii().replace('-', '').replace('_', '') || size(n) - size(k) in [-1, 0, 1] && [18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60].exists(p, p < size(n) && p < size(k) && n.substring(0, p) == k.substring(0, p) && (n.substring(p + 1) == k.substring(p) || n.substring(p) == k.substring(p + 1) || n.substring(p + 1) == k.substring(p + 1) || p + 1 < size(n) && p + 1 < size(k) && n.substring(p + 2) == k.substring(p + 2) && n.charAt(p) == k.charAt(p + 1) && n.charAt(p + 1) == k.charAt(p)))) || k.contains('cloudscale') && k.endsWith(n.substring(n.indexOf('/'))) || n.endsWith('-' + k.substring(k.indexOf('/') + 1)) || (n.contains('-' + k.substring(k.indexOf('/') + 1) + '-') || k.endsWith('-' + n.substring(n.indexOf('/') + 1)) || k.substring(k.indexOf('/') + 1).contains('-') && n.endsWith(k.substring(k.lastIndexOf('-'))))))].map(l, size(l) == 0 ? k : k + ' (is it ' + l.filter(n, size(l.filter(m, (size(m) > size(k) ? size(m) - size(k) : size(k) - size(m)) < (size(n) > size(k) ? size(n) - size(k) : size(k) - size(n)) || (size(m) > size(k) ? size(m) - size(k) : size(k) - size(m)) == (size(n) > size(k) ? size(n) - size(k) : size(k) - size(n)) && m < n)) < 3).join(' or ') + '?)')[0]).join(', ')
  - expression: |-
      !('k8s.cloudscale.ch/loadbalancer-uuid' in variables.touched)
      || (variables.annotations['k8s.cloudscale.ch/loadbalancer-uuid'].trim() == '' || variables.annotations['k8s.cloudscale.ch/loadbalancer-uuid'].trim().matches(r'(?i)^((urn:uuid:)?[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{32}|\{[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\})$'))
    message: |-
      k8s.cloudscale.ch/loadbalancer-uuid must be a UUID
    messageExpression: |-
      variables.annotations['k8s.cloudscale.ch/loadbalancer-uuid'].matches(r'^\P{Cc}{0,250}$') ? 'k8s.cloudscale.ch/loadbalancer-uuid is `' + variables.annotations['k8s.cloudscale.ch/loadbalancer-uuid'] + '` and must be a UUID' : ''
  - expression: |-
      !('k8s.cloudscale.ch/loadbalancer-config-version' in variables.touched)
      || (variables.annotations['k8s.cloudscale.ch/loadbalancer-config-version'].trim() in ['1'])
    message: |-
      k8s.cloudscale.ch/loadbalancer-config-version must be 1
    messageExpression: |-
      variables.annotations['k8s.cloudscale.ch/loadbalancer-config-version'].matches(r'^\P{Cc}{0,250}$') ? 'k8s.cloudscale.ch/loadbalancer-config-version is `' + variables.annotations['k8s.cloudscale.ch/loadbalancer-config-version'] + '` and must be 1' : ''
  - expression: |-
      !('k8s.cloudscale.ch/loadbalancer-name' in variables.touched)
      || (variables.annotations['k8s.cloudscale.ch/loadbalancer-name'].trim() != '')
    message: |-
      k8s.cloudscale.ch/loadbalancer-name must be a text that is not blank
    messageExpression: |-
      variables.annotations['k8s.cloudscale.ch/loadbalancer-name'].matches(r'^\P{Cc}{0,250}$') ? 'k8s.cloudscale.ch/loadbalancer-name is `' + variables.annotations['k8s.cloudscale.ch/loadbalancer-name'] + '` and must be a text that is not blank' : ''
  - expression: |-
      !('k8s.cloudscale.ch/loadbalancer-vip-addresses' in variables.touched)
      || (variables.annotations['k8s.cloudscale.ch/loadbalancer-vip-addresses'].matches(r'\{[^{}]*(\{|\[[^\]{}]*[\[{])')
      || variables.annotations['k8s.cloudscale.ch/loadbalancer-vip-addresses'].matches(r'^[ \t\r\n]*(null|\[[ \t\r\n]*(\{[ \t\r\n]*("([^"\\\x00-\x1f]|\\.)*"[ \t\r\n]*:[ \t\r\n]*(("([^"\\\x00-\x1f]|\\.)*"|-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?|true|false|null)|\[[ \t\r\n]*(("([^"\\\x00-\x1f]|\\.)*"|-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?|true|false|null)[ \t\r\n]*(,[ \t\r\n]*("([^"\\\x00-\x1f]|\\.)*"|-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?|true|false|null)[ \t\r\n]*)*)?\])[ \t\r\n]*(,[ \t\r\n]*"([^"\\\x00-\x1f]|\\.)*"[ \t\r\n]*:[ \t\r\n]*(("([^"\\\x00-\x1f]|\\.)*"|-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?|true|false|null)|\[[ \t\r\n]*(("([^"\\\x00-\x1f]|\\.)*"|-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?|true|false|null)[ \t\r\n]*(,[ \t\r\n]*("([^"\\\x00-\x1f]|\\.)*"|-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?|true|false|null)[ \t\r\n]*)*)?\])[ \t\r\n]*)*)?\}[ \t\r\n]*(,[ \t\r\n]*\{[ \t\r\n]*("([^"\\\x00-\x1f]|\\.)*"[ \t\r\n]*:[ \t\r\n]*(("([^"\\\x00-\x1f]|\\.)*"|-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?|true|false|null)|\[[ \t\r\n]*(("([^"\\\x00-\x1f]|\\.)*"|-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?|true|false|null)[ \t\r\n]*(,[ \t\r\n]*("([^"\\\x00-\x1f]|\\.)*"|-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?|true|false|null)[ \t\r\n]*)*)?\])[ \t\r\n]*(,[ \t\r\n]*"([^"\\\x00-\x1f]|\\.)*"[ \t\r\n]*:[ \t\r\n]*(("([^"\\\x00-\x1f]|\\.)*"|-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?|true|false|null)|\[[ \t\r\n]*(("([^"\\\x00-\x1f]|\\.)*"|-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?|true|false|null)[ \t\r\n]*(,[ \t\r\n]*("([^"\\\x00-\x1f]|\\.)*"|-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?|true|false|null)[ \t\r\n]*)*)?\])[ \t\r\n]*)*)?\}[ \t\r\n]*)*)?\])[ \t\r\n]*$')
      && !variables.annotations['k8s.cloudscale.ch/loadbalancer-vip-addresses'].matches(r'(?i)"(address|subnet)"[ \t\r\n]*:[ \t\r\n]*[^"n \t\r\n]')
      && variables.annotations['k8s.cloudscale.ch/loadbalancer-vip-addresses'].findAll(r'(?i)"address"[ \t\r\n]*:[ \t\r\n]*"[^"\\]*"').map(i, i.substring(0, size(i) - 1)).map(i, i.substring(i.lastIndexOf('"') + 1)).all(a, a == '' || (isIP(a) || a.matches(r'^[0:]*:[fF]{4}:'))))
    message: |-
      k8s.cloudscale.ch/loadbalancer-vip-addresses must be a JSON list of objects with subnet and address, such as [{"address": "10.0.0.7"}]
    messageExpression: |-
      variables.annotations['k8s.cloudscale.ch/loadbalancer-vip-addresses'].matches(r'^\P{Cc}{0,250}$') ? 'k8s.cloudscale.ch/loadbalancer-vip-addresses is `' + variables.annotations['k8s.cloudscale.ch/loadbalancer-vip-addresses'] + '` and must be a JSON list of objects with subnet and address, such as [{"address": "10.0.0.7"}]' : ''
  - expression: |-
      !('k8s.cloudscale.ch/loadbalancer-floating-ips' in variables.touched)
      || ((variables.annotations['k8s.cloudscale.ch/loadbalancer-floating-ips'].trim() == '' || variables.annotations['k8s.cloudscale.ch/loadbalancer-floating-ips'].matches(r'^[ \t\r\n]*(null|\[[ \t\r\n]*("([^"\\\x00-\x1f]|\\.)*"[ \t\r\n]*(,[ \t\r\n]*"([^"\\\x00-\x1f]|\\.)*"[ \t\r\n]*)*)?\])[ \t\r\n]*$'))
      && variables.annotations['k8s.cloudscale.ch/loadbalancer-floating-ips'].findAll(r'"([^"\\]|\\.)*"').map(i, i.substring(1, size(i) - 1)).filter(i, !i.contains('\\')).all(i, ((isIP(i.trim()) || i.trim().matches(r'^[0:]*:[fF]{4}:')) || (isCIDR(i.trim()) || i.trim().matches(r'^[0-9A-Fa-f:.]+/[0-9]{1,3}$') && i.trim().matches(r'(^|[./])0[0-9]|:.*\.|^[0:]*:[fF]{4}:')))))
    message: |-
      k8s.cloudscale.ch/loadbalancer-floating-ips must be a JSON list of IP addresses, such as ["198.51.100.7/32"]
    messageExpression: |-
      variables.annotations['k8s.cloudscale.ch/loadbalancer-floating-ips'].matches(r'^\P{Cc}{0,250}$') ? 'k8s.cloudscale.ch/loadbalancer-floating-ips is `' + variables.annotations['k8s.cloudscale.ch/loadbalancer-floating-ips'] + '` and must be a JSON list of IP addresses, such as ["198.51.100.7/32"]' : ''
  - expression: |-
      !('k8s.cloudscale.ch/loadbalancer-pool-algorithm' in variables.touched)
      || (variables.annotations['k8s.cloudscale.ch/loadbalancer-pool-algorithm'].trim() in ['round_robin', 'least_connections', 'source_ip'])
    message: |-
      k8s.cloudscale.ch/loadbalancer-pool-algorithm must be one of: round_robin, least_connections, source_ip
    messageExpression: |-
      variables.annotations['k8s.cloudscale.ch/loadbalancer-pool-algorithm'].matches(r'^\P{Cc}{0,250}$') ? 'k8s.cloudscale.ch/loadbalancer-pool-algorithm is `' + variables.annotations['k8s.cloudscale.ch/loadbalancer-pool-algorithm'] + '` and must be one of: round_robin, least_connections, source_ip' : ''
  - expression: |-
      !('k8s.cloudscale.ch/loadbalancer-pool-protocol' in variables.touched)
      || (variables.annotations['k8s.cloudscale.ch/loadbalancer-pool-protocol'].trim() in ['tcp', 'proxy', 'proxyv2'])
    message: |-
      k8s.cloudscale.ch/loadbalancer-pool-protocol must be one of: tcp, proxy, proxyv2
    messageExpression: |-
      variables.annotations['k8s.cloudscale.ch/loadbalancer-pool-protocol'].matches(r'^\P{Cc}{0,250}$') ? 'k8s.cloudscale.ch/loadbalancer-pool-protocol is `' + variables.annotations['k8s.cloudscale.ch/loadbalancer-pool-protocol'] + '` and must be one of: tcp, proxy, proxyv2' : ''
  - expression: |-
      !('k8s.cloudscale.ch/loadbalancer-listener-protocol' in variables.touched)
      || (variables.annotations['k8s.cloudscale.ch/loadbalancer-listener-protocol'].trim() in ['tcp'])
    message: |-
      k8s.cloudscale.ch/loadbalancer-listener-protocol must be tcp
    messageExpression: |-
      variables.annotations['k8s.cloudscale.ch/loadbalancer-listener-protocol'].matches(r'^\P{Cc}{0,250}$') ? 'k8s.cloudscale.ch/loadbalancer-listener-protocol is `' + variables.annotations['k8s.cloudscale.ch/loadbalancer-listener-protocol'] + '` and must be tcp' : ''
  - expression: |-
      !('k8s.cloudscale.ch/loadbalancer-listener-allowed-cidrs' in variables.touched)
      || ((variables.annotations['k8s.cloudscale.ch/loadbalancer-listener-allowed-cidrs'].trim() == '' || variables.annotations['k8s.cloudscale.ch/loadbalancer-listener-allowed-cidrs'].matches(r'^[ \t\r\n]*(null|\[[ \t\r\n]*("([^"\\\x00-\x1f]|\\.)*"[ \t\r\n]*(,[ \t\r\n]*"([^"\\\x00-\x1f]|\\.)*"[ \t\r\n]*)*)?\])[ \t\r\n]*$'))
      && variables.annotations['k8s.cloudscale.ch/loadbalancer-listener-allowed-cidrs'].findAll(r'"([^"\\]|\\.)*"').map(i, i.substring(1, size(i) - 1)).filter(i, !i.contains('\\')).all(i, (isCIDR(i.trim()) || i.trim().matches(r'^[0-9A-Fa-f:.]+/[0-9]{1,3}$') && i.trim().matches(r'(^|[./])0[0-9]|:.*\.|^[0:]*:[fF]{4}:'))))
    message: |-
      k8s.cloudscale.ch/loadbalancer-listener-allowed-cidrs must be a JSON list of networks in CIDR notation, such as ["192.0.2.0/24"]
    messageExpression: |-
      variables.annotations['k8s.cloudscale.ch/loadbalancer-listener-allowed-cidrs'].matches(r'^\P{Cc}{0,250}$') ? 'k8s.cloudscale.ch/loadbalancer-listener-allowed-cidrs is `' + variables.annotations['k8s.cloudscale.ch/loadbalancer-listener-allowed-cidrs'] + '` and must be a JSON list of networks in CIDR notation, such as ["192.0.2.0/24"]' : ''
  - expression: |-
      !('k8s.cloudscale.ch/loadbalancer-listener-allowed-subnets' in variables.touched)
      || ((variables.annotations['k8s.cloudscale.ch/loadbalancer-listener-allowed-subnets'].trim() == '' || variables.annotations['k8s.cloudscale.ch/loadbalancer-listener-allowed-subnets'].matches(r'^[ \t\r\n]*(null|\[[ \t\r\n]*("([^"\\\x00-\x1f]|\\.)*"[ \t\r\n]*(,[ \t\r\n]*"([^"\\\x00-\x1f]|\\.)*"[ \t\r\n]*)*)?\])[ \t\r\n]*$'))
      && variables.annotations['k8s.cloudscale.ch/loadbalancer-listener-allowed-subnets'].findAll(r'"([^"\\]|\\.)*"').map(i, i.substring(1, size(i) - 1)).filter(i, !i.contains('\\')).all(i, i.trim().matches(r'(?i)^((urn:uuid:)?[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{32}|\{[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\})$')))
    message: |-
      k8s.cloudscale.ch/loadbalancer-listener-allowed-subnets must be a JSON list of UUIDs, such as ["2db69ba3-1864-4608-853a-0771b6885a3a"]
    messageExpression: |-
      variables.annotations['k8s.cloudscale.ch/loadbalancer-listener-allowed-subnets'].matches(r'^\P{Cc}{0,250}$') ? 'k8s.cloudscale.ch/loadbalancer-listener-allowed-subnets is `' + variables.annotations['k8s.cloudscale.ch/loadbalancer-listener-allowed-subnets'] + '` and must be a JSON list of UUIDs, such as ["2db69ba3-1864-4608-853a-0771b6885a3a"]' : ''
  - expression: |-
      !('k8s.cloudscale.ch/loadbalancer-timeout-client-data-ms' in variables.touched)
      || (variables.annotations['k8s.cloudscale.ch/loadbalancer-timeout-client-data-ms'].trim().matches(r'^[-+]?0*[0-9]{1,18}$') ? int(variables.annotations['k8s.cloudscale.ch/loadbalancer-timeout-client-data-ms'].trim()) >= 0 : variables.annotations['k8s.cloudscale.ch/loadbalancer-timeout-client-data-ms'].trim().matches(r'^[+]?[0-9]+$'))
    message: |-
      k8s.cloudscale.ch/loadbalancer-timeout-client-data-ms must be a whole number, 0 or more
    messageExpression: |-
      variables.annotations['k8s.cloudscale.ch/loadbalancer-timeout-client-data-ms'].matches(r'^\P{Cc}{0,250}$') ? 'k8s.cloudscale.ch/loadbalancer-timeout-client-data-ms is `' + variables.annotations['k8s.cloudscale.ch/loadbalancer-timeout-client-data-ms'] + '` and must be a whole number, 0 or more' : ''
  - expression: |-
      !('k8s.cloudscale.ch/loadbalancer-timeout-member-connect-ms' in variables.touched)
      || (variables.annotations['k8s.cloudscale.ch/loadbalancer-timeout-member-connect-ms'].trim().matches(r'^[-+]?0*[0-9]{1,18}$') ? int(variables.annotations['k8s.cloudscale.ch/loadbalancer-timeout-member-connect-ms'].trim()) >= 0 : variables.annotations['k8s.cloudscale.ch/loadbalancer-timeout-member-connect-ms'].trim().matches(r'^[+]?[0-9]+$'))
    message: |-
      k8s.cloudscale.ch/loadbalancer-timeout-member-connect-ms must be a whole number, 0 or more
    messageExpression: |-
      variables.annotations['k8s.cloudscale.ch/loadbalancer-timeout-member-connect-ms'].matches(r'^\P{Cc}{0,250}$') ? 'k8s.cloudscale.ch/loadbalancer-timeout-member-connect-ms is `' + variables.annotations['k8s.cloudscale.ch/loadbalancer-timeout-member-connect-ms'] + '` and must be a whole number, 0 or more' : ''
  - expression: |-
      !('k8s.cloudscale.ch/loadbalancer-timeout-member-data-ms' in variables.touched)
      || (variables.annotations['k8s.cloudscale.ch/loadbalancer-timeout-member-data-ms'].trim().matches(r'^[-+]?0*[0-9]{1,18}$') ? int(variables.annotations['k8s.cloudscale.ch/loadbalancer-timeout-member-data-ms'].trim()) >= 0 : variables.annotations['k8s.cloudscale.ch/loadbalancer-timeout-member-data-ms'].trim().matches(r'^[+]?[0-9]+$'))
    message: |-
      k8s.cloudscale.ch/loadbalancer-timeout-member-data-ms must be a whole number, 0 or more
    messageExpression: |-
      variables.annotations['k8s.cloudscale.ch/loadbalancer-timeout-member-data-ms'].matches(r'^\P{Cc}{0,250}$') ? 'k8s.cloudscale.ch/loadbalancer-timeout-member-data-ms is `' + variables.annotations['k8s.cloudscale.ch/loadbalancer-timeout-member-data-ms'] + '` and must be a whole number, 0 or more' : ''
  - expression: |-
      !('k8s.cloudscale.ch/loadbalancer-health-monitor-type' in variables.touched)
      || (variables.annotations['k8s.cloudscale.ch/loadbalancer-health-monitor-type'].trim() in ['ping', 'tcp', 'http', 'https', 'tls-hello', 'udp-connect'])
    message: |-
      k8s.cloudscale.ch/loadbalancer-health-monitor-type must be one of: ping, tcp, http, https, tls-hello, udp-connect
    messageExpression: |-
      variables.annotations['k8s.cloudscale.ch/loadbalancer-health-monitor-type'].matches(r'^\P{Cc}{0,250}$') ? 'k8s.cloudscale.ch/loadbalancer-health-monitor-type is `' + variables.annotations['k8s.cloudscale.ch/loadbalancer-health-monitor-type'] + '` and must be one of: ping, tcp, http, https, tls-hello, udp-connect' : ''
  - expression: |-
      !('k8s.cloudscale.ch/loadbalancer-health-monitor-http' in variables.touched)
      || (variables.annotations['k8s.cloudscale.ch/loadbalancer-health-monitor-http'].matches(r'\{[^{}]*(\{|\[[^\]{}]*[\[{])')
      || variables.annotations['k8s.cloudscale.ch/loadbalancer-health-monitor-http'].matches(r'^[ \t\r\n]*\{[ \t\r\n]*("([^"\\\x00-\x1f]|\\.)*"[ \t\r\n]*:[ \t\r\n]*(("([^"\\\x00-\x1f]|\\.)*"|-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?|true|false|null)|\[[ \t\r\n]*(("([^"\\\x00-\x1f]|\\.)*"|-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?|true|false|null)[ \t\r\n]*(,[ \t\r\n]*("([^"\\\x00-\x1f]|\\.)*"|-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?|true|false|null)[ \t\r\n]*)*)?\])[ \t\r\n]*(,[ \t\r\n]*"([^"\\\x00-\x1f]|\\.)*"[ \t\r\n]*:[ \t\r\n]*(("([^"\\\x00-\x1f]|\\.)*"|-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?|true|false|null)|\[[ \t\r\n]*(("([^"\\\x00-\x1f]|\\.)*"|-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?|true|false|null)[ \t\r\n]*(,[ \t\r\n]*("([^"\\\x00-\x1f]|\\.)*"|-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?|true|false|null)[ \t\r\n]*)*)?\])[ \t\r\n]*)*)?\}[ \t\r\n]*$')
      && !variables.annotations['k8s.cloudscale.ch/loadbalancer-health-monitor-http'].matches(r'(?i)"(method|url_path|version|host)"[ \t\r\n]*:[ \t\r\n]*[^"n \t\r\n]')
      && !variables.annotations['k8s.cloudscale.ch/loadbalancer-health-monitor-http'].matches(r'(?i)"expected_codes"[ \t\r\n]*:[ \t\r\n]*([^\[n \t\r\n]|\[[ \t\r\n]*[^"\] \t\r\n])'))
    message: |-
      k8s.cloudscale.ch/loadbalancer-health-monitor-http must be a JSON object, such as {"url_path": "/livez", "expected_codes": ["200"]}
    messageExpression: |-
      variables.annotations['k8s.cloudscale.ch/loadbalancer-health-monitor-http'].matches(r'^\P{Cc}{0,250}$') ? 'k8s.cloudscale.ch/loadbalancer-health-monitor-http is `' + variables.annotations['k8s.cloudscale.ch/loadbalancer-health-monitor-http'] + '` and must be a JSON object, such as {"url_path": "/livez", "expected_codes": ["200"]}' : ''
  - expression: |-
      !('k8s.cloudscale.ch/loadbalancer-health-monitor-delay-s' in variables.touched)
      || (variables.annotations['k8s.cloudscale.ch/loadbalancer-health-monitor-delay-s'].trim().matches(r'^[-+]?0*[0-9]{1,18}$') ? int(variables.annotations['k8s.cloudscale.ch/loadbalancer-health-monitor-delay-s'].trim()) >= 1 : variables.annotations['k8s.cloudscale.ch/loadbalancer-health-monitor-delay-s'].trim().matches(r'^[+]?[0-9]+$'))
    message: |-
      k8s.cloudscale.ch/loadbalancer-health-monitor-delay-s must be a whole number, 1 or more
    messageExpression: |-
      variables.annotations['k8s.cloudscale.ch/loadbalancer-health-monitor-delay-s'].matches(r'^\P{Cc}{0,250}$') ? 'k8s.cloudscale.ch/loadbalancer-health-monitor-delay-s is `' + variables.annotations['k8s.cloudscale.ch/loadbalancer-health-monitor-delay-s'] + '` and must be a whole number, 1 or more' : ''
  - expression: |-
      !('k8s.cloudscale.ch/loadbalancer-health-monitor-timeout-s' in variables.touched)
      || (variables.annotations['k8s.cloudscale.ch/loadbalancer-health-monitor-timeout-s'].trim().matches(r'^[-+]?0*[0-9]{1,18}$') ? int(variables.annotations['k8s.cloudscale.ch/loadbalancer-health-monitor-timeout-s'].trim()) >= 1 : variables.annotations['k8s.cloudscale.ch/loadbalancer-health-monitor-timeout-s'].trim().matches(r'^[+]?[0-9]+$'))
    message: |-
      k8s.cloudscale.ch/loadbalancer-health-monitor-timeout-s must be a whole number, 1 or more
    messageExpression: |-
      variables.annotations['k8s.cloudscale.ch/loadbalancer-health-monitor-timeout-s'].matches(r'^\P{Cc}{0,250}$') ? 'k8s.cloudscale.ch/loadbalancer-health-monitor-timeout-s is `' + variables.annotations['k8s.cloudscale.ch/loadbalancer-health-monitor-timeout-s'] + '` and must be a whole number, 1 or more' : ''
  - expression: |-
      !('k8s.cloudscale.ch/loadbalancer-health-monitor-up-threshold' in variables.touched)
      || (variables.annotations['k8s.cloudscale.ch/loadbalancer-health-monitor-up-threshold'].trim().matches(r'^[-+]?0*[0-9]{1,18}$') ? int(variables.annotations['k8s.cloudscale.ch/loadbalancer-health-monitor-up-threshold'].trim()) >= 1 : variables.annotations['k8s.cloudscale.ch/loadbalancer-health-monitor-up-threshold'].trim().matches(r'^[+]?[0-9]+$'))
    message: |-
      k8s.cloudscale.ch/loadbalancer-health-monitor-up-threshold must be a whole number, 1 or more
    messageExpression: |-
      variables.annotations['k8s.cloudscale.ch/loadbalancer-health-monitor-up-threshold'].matches(r'^\P{Cc}{0,250}$') ? 'k8s.cloudscale.ch/loadbalancer-health-monitor-up-threshold is `' + variables.annotations['k8s.cloudscale.ch/loadbalancer-health-monitor-up-threshold'] + '` and must be a whole number, 1 or more' : ''
  - expression: |-
      !('k8s.cloudscale.ch/loadbalancer-health-monitor-down-threshold' in variables.touched)
      || (variables.annotations['k8s.cloudscale.ch/loadbalancer-health-monitor-down-threshold'].trim().matches(r'^[-+]?0*[0-9]{1,18}$') ? int(variables.annotations['k8s.cloudscale.ch/loadbalancer-health-monitor-down-threshold'].trim()) >= 1 : variables.annotations['k8s.cloudscale.ch/loadbalancer-health-monitor-down-threshold'].trim().matches(r'^[+]?[0-9]+$'))
    message: |-
      k8s.cloudscale.ch/loadbalancer-health-monitor-down-threshold must be a whole number, 1 or more
    messageExpression: |-
      variables.annotations['k8s.cloudscale.ch/loadbalancer-health-monitor-down-threshold'].matches(r'^\P{Cc}{0,250}$') ? 'k8s.cloudscale.ch/loadbalancer-health-monitor-down-threshold is `' + variables.annotations['k8s.cloudscale.ch/loadbalancer-health-monitor-down-threshold'] + '` and must be a whole number, 1 or more' : ''
  - expression: |-
      !('k8s.cloudscale.ch/loadbalancer-force-hostname' in variables.touched)
      || (variables.annotations['k8s.cloudscale.ch/loadbalancer-force-hostname'].trim() == '' || size(variables.annotations['k8s.cloudscale.ch/loadbalancer-force-hostname'].trim()) <= 253 && variables.annotations['k8s.cloudscale.ch/loadbalancer-force-hostname'].trim().matches(r'^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$') && !isIP(variables.annotations['k8s.cloudscale.ch/loadbalancer-force-hostname'].trim()))
    message: |-
      k8s.cloudscale.ch/loadbalancer-force-hostname must be a DNS name in lower case, such as www.example.org
    messageExpression: |-
      variables.annotations['k8s.cloudscale.ch/loadbalancer-force-hostname'].matches(r'^\P{Cc}{0,250}$') ? 'k8s.cloudscale.ch/loadbalancer-force-hostname is `' + variables.annotations['k8s.cloudscale.ch/loadbalancer-force-hostname'] + '` and must be a DNS name in lower case, such as www.example.org' : ''
  - expression: |-
      !('k8s.cloudscale.ch/loadbalancer-ip-mode' in variables.touched)
      || (variables.annotations['k8s.cloudscale.ch/loadbalancer-ip-mode'].trim() in ['Proxy', 'VIP'])
    message: |-
      k8s.cloudscale.ch/loadbalancer-ip-mode must be one of: Proxy, VIP
    messageExpression: |-
      variables.annotations['k8s.cloudscale.ch/loadbalancer-ip-mode'].matches(r'^\P{Cc}{0,250}$') ? 'k8s.cloudscale.ch/loadbalancer-ip-mode is `' + variables.annotations['k8s.cloudscale.ch/loadbalancer-ip-mode'] + '` and must be one of: Proxy, VIP' : ''
  - expression: |-
      !('k8s.cloudscale.ch/loadbalancer-node-selector' in variables.touched)
      || (variables.annotations['k8s.cloudscale.ch/loadbalancer-node-selector'].matches(r'^[ \t\r\n]*((![ \t\r\n]*([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?|([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?([ \t\r\n]*(=|==|!=)[ \t\r\n]*([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?|[ \t\r\n]+(in|notin)[ \t\r\n]*\([ \t\r\n]*([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?[ \t\r\n]*(,[ \t\r\n]*([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?[ \t\r\n]*)*\)|[ \t\r\n]*[<>][ \t\r\n]*[0-9]+)?)([ \t\r\n]*,[ \t\r\n]*(![ \t\r\n]*([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?|([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?([ \t\r\n]*(=|==|!=)[ \t\r\n]*([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?|[ \t\r\n]+(in|notin)[ \t\r\n]*\([ \t\r\n]*([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?[ \t\r\n]*(,[ \t\r\n]*([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?[ \t\r\n]*)*\)|[ \t\r\n]*[<>][ \t\r\n]*[0-9]+)?))*)?[ \t\r\n]*$'))
    message: |-
      k8s.cloudscale.ch/loadbalancer-node-selector must be a label selector, such as pool=web or zone in (a, b)
    messageExpression: |-
      variables.annotations['k8s.cloudscale.ch/loadbalancer-node-selector'].matches(r'^\P{Cc}{0,250}$') ? 'k8s.cloudscale.ch/loadbalancer-node-selector is `' + variables.annotations['k8s.cloudscale.ch/loadbalancer-node-selector'] + '` and must be a label selector, such as pool=web or zone in (a, b)' : ''
  - expression: |-
      !(variables.isNew || has(object.spec.ports) != has(oldObject.spec.ports) || has(object.spec.ports) && object.spec.ports != oldObject.spec.ports)
      || (!has(object.spec.ports) || object.spec.ports.all(p, !has(p.protocol) || p.protocol in ['TCP', 'UDP']))
    message: |-
      spec.ports: a load balancer of cloudscale.ch takes the protocols TCP and UDP only
  - expression: |-
      !(variables.isNew || has(object.spec.allocateLoadBalancerNodePorts) != has(oldObject.spec.allocateLoadBalancerNodePorts) || has(object.spec.allocateLoadBalancerNodePorts) && object.spec.allocateLoadBalancerNodePorts != oldObject.spec.allocateLoadBalancerNodePorts)
      || (!has(object.spec.allocateLoadBalancerNodePorts) || object.spec.allocateLoadBalancerNodePorts
      || has(object.spec.ports) && object.spec.ports.all(p, has(p.nodePort) && p.nodePort != 0))
    message: |-
      spec.allocateLoadBalancerNodePorts is false, and the load balancer reaches its members by their node ports: leave it out
  - expression: |-
      !('service.beta.kubernetes.io/load-balancer-source-ranges' in variables.touched)
      || (!('service.beta.kubernetes.io/load-balancer-source-ranges' in variables.annotations) || variables.annotations['service.beta.kubernetes.io/load-balancer-source-ranges'].trim() == '')
    message: |-
      service.beta.kubernetes.io/load-balancer-source-ranges has no effect, so everybody may connect: give the networks in k8s.cloudscale.ch/loadbalancer-listener-allowed-cidrs
  - expression: |-
      !(variables.isNew || has(object.spec.loadBalancerSourceRanges) != has(oldObject.spec.loadBalancerSourceRanges) || has(object.spec.loadBalancerSourceRanges) && object.spec.loadBalancerSourceRanges != oldObject.spec.loadBalancerSourceRanges)
      || (!has(object.spec.loadBalancerSourceRanges) || size(object.spec.loadBalancerSourceRanges) == 0)
    message: |-
      spec.loadBalancerSourceRanges has no effect, so everybody may connect: give the networks in k8s.cloudscale.ch/loadbalancer-listener-allowed-cidrs
  - expression: |-
      !('k8s.cloudscale.ch/loadbalancer-floating-ips' in variables.touched)
      || (!('k8s.cloudscale.ch/loadbalancer-floating-ips' in variables.annotations) || variables.annotations['k8s.cloudscale.ch/loadbalancer-floating-ips'].findAll(r'"([^"\\]|\\.)*"').map(i, i.substring(1, size(i) - 1)).filter(i, !i.contains('\\')).all(i, !(isCIDR(i.trim()) && cidr(i.trim()).prefixLength() != (cidr(i.trim()).ip().family() == 4 ? 32 : 128))))
    message: |-
      k8s.cloudscale.ch/loadbalancer-floating-ips: a floating network cannot lead to a load balancer, which takes single addresses only
  - expression: |-
      !('k8s.cloudscale.ch/loadbalancer-vip-addresses' in variables.touched)
      || (!('k8s.cloudscale.ch/loadbalancer-vip-addresses' in variables.annotations) || variables.annotations['k8s.cloudscale.ch/loadbalancer-vip-addresses'].matches(r'\{[^{}]*(\{|\[[^\]{}]*[\[{])') || variables.annotations['k8s.cloudscale.ch/loadbalancer-vip-addresses'].findAll(r'"([^"\\]|\\.)*"([ \t\r\n]*:)?').filter(t, t.endsWith(':')).map(t, t.substring(1, t.lastIndexOf('"')).lowerAscii()).all(t, t.contains('\\') || t in ['subnet', 'address']))
    message: |-
      k8s.cloudscale.ch/loadbalancer-vip-addresses: fields other than `subnet` and `address` have no effect
  - expression: |-
      !('k8s.cloudscale.ch/loadbalancer-health-monitor-http' in variables.touched)
      || (!('k8s.cloudscale.ch/loadbalancer-health-monitor-http' in variables.annotations) || variables.annotations['k8s.cloudscale.ch/loadbalancer-health-monitor-http'].matches(r'\{[^{}]*(\{|\[[^\]{}]*[\[{])') || variables.annotations['k8s.cloudscale.ch/loadbalancer-health-monitor-http'].findAll(r'"([^"\\]|\\.)*"([ \t\r\n]*:)?').filter(t, t.endsWith(':')).map(t, t.substring(1, t.lastIndexOf('"')).lowerAscii()).all(t, t.contains('\\') || t in ['expected_codes', 'method', 'url_path', 'version', 'host']))
    message: |-
      k8s.cloudscale.ch/loadbalancer-health-monitor-http: fields other than `expected_codes`, `method`, `url_path`, `version` and `host` have no effect
  - expression: |-
      !('k8s.cloudscale.ch/loadbalancer-health-monitor-http' in variables.touched)
      || (!('k8s.cloudscale.ch/loadbalancer-health-monitor-http' in variables.annotations) || variables.annotations['k8s.cloudscale.ch/loadbalancer-health-monitor-http'].findAll(r'(?i)"method"[ \t\r\n]*:[ \t\r\n]*"[^"\\]*"').map(i, i.substring(0, size(i) - 1)).map(i, i.substring(i.lastIndexOf('"') + 1)).map(t, t.trim()).all(t, t == '' || t.matches(r'^(?i:CONNECT|DELETE|GET|HEAD|OPTIONS|PATCH|POST|PUT|TRACE)$')))
    message: |-
      k8s.cloudscale.ch/loadbalancer-health-monitor-http: `method` must be one of CONNECT, DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT, TRACE
  - expression: |-
      !('k8s.cloudscale.ch/loadbalancer-health-monitor-http' in variables.touched)
      || (!('k8s.cloudscale.ch/loadbalancer-health-monitor-http' in variables.annotations) || variables.annotations['k8s.cloudscale.ch/loadbalancer-health-monitor-http'].findAll(r'(?i)"version"[ \t\r\n]*:[ \t\r\n]*"[^"\\]*"').map(i, i.substring(0, size(i) - 1)).map(i, i.substring(i.lastIndexOf('"') + 1)).map(t, t.trim()).all(t, t == '' || t.matches(r'^1\.[01]$')))
    message: |-
      k8s.cloudscale.ch/loadbalancer-health-monitor-http: `version` must be "1.0" or "1.1"
  - expression: |-
      !('k8s.cloudscale.ch/loadbalancer-health-monitor-http' in variables.touched)
      || (!('k8s.cloudscale.ch/loadbalancer-health-monitor-http' in variables.annotations) || variables.annotations['k8s.cloudscale.ch/loadbalancer-health-monitor-http'].findAll(r'(?i)"url_path"[ \t\r\n]*:[ \t\r\n]*"[^"\\]*"').map(i, i.substring(0, size(i) - 1)).map(i, i.substring(i.lastIndexOf('"') + 1)).map(t, t.trim()).all(t, t == '' || t.matches(r'^/.*$')))
    message: |-
      k8s.cloudscale.ch/loadbalancer-health-monitor-http: `url_path` must begin with `/`
  - expression: |-
      !('k8s.cloudscale.ch/loadbalancer-health-monitor-http' in variables.touched)
      || (!('k8s.cloudscale.ch/loadbalancer-health-monitor-http' in variables.annotations) || variables.annotations['k8s.cloudscale.ch/loadbalancer-health-monitor-http'].findAll(r'(?i)"expected_codes"[ \t\r\n]*:[ \t\r\n]*\[[^\[\]]*\]').all(l, l.substring(l.indexOf('[')).findAll(r'"([^"\\]|\\.)*"').map(i, i.substring(1, size(i) - 1)).filter(i, !i.contains('\\')).all(c, c.matches(r'^[ ]*[1-9][0-9]{2}[ ]*$')) || size(l.substring(l.indexOf('[')).findAll(r'"([^"\\]|\\.)*"').map(i, i.substring(1, size(i) - 1)).filter(i, !i.contains('\\'))) == 1 && l.substring(l.indexOf('[')).findAll(r'"([^"\\]|\\.)*"').map(i, i.substring(1, size(i) - 1)).filter(i, !i.contains('\\')).all(c, c.matches(r'^[ ]*[1-9][0-9]{2}[ ]*-[ ]*[1-9][0-9]{2}[ ]*$'))))
    message: |-
      k8s.cloudscale.ch/loadbalancer-health-monitor-http: `expected_codes` must be HTTP status codes, such as ["200", "204"], or one range, such as ["200-204"]
  - expression: |-
      !('k8s.cloudscale.ch/loadbalancer-health-monitor-http' in variables.touched)
      || (!('k8s.cloudscale.ch/loadbalancer-health-monitor-http' in variables.annotations) || !(variables.annotations['k8s.cloudscale.ch/loadbalancer-health-monitor-http'].findAll(r'(?i)"version"[ \t\r\n]*:[ \t\r\n]*"[^"\\]*"').map(i, i.substring(0, size(i) - 1)).map(i, i.substring(i.lastIndexOf('"') + 1)).exists(t, t.trim() == '1.0') && variables.annotations['k8s.cloudscale.ch/loadbalancer-health-monitor-http'].findAll(r'(?i)"host"[ \t\r\n]*:[ \t\r\n]*"[^"\\]*"').map(i, i.substring(0, size(i) - 1)).map(i, i.substring(i.lastIndexOf('"') + 1)).exists(t, t.trim() != '')))
    message: |-
      k8s.cloudscale.ch/loadbalancer-health-monitor-http: `host` cannot be used with `version` 1.0
{{- end }}
{{- define "bowline.admission.cloudscale.changes" }}
# A fault in a policy must not keep Services from anybody.
failurePolicy: Ignore
matchConstraints:
  resourceRules:
    - apiGroups: [""]
      apiVersions: [v1]
      operations: [UPDATE]
      resources: [services]
matchConditions:
  - name: load-balancer
    expression: |-
      has(object.spec.type) && object.spec.type == 'LoadBalancer'
  - name: class
    expression: |-
      {{ include "bowline.admission.class" . }}
  - name: not-being-deleted
    expression: |-
      !has(object.metadata.deletionTimestamp)
  - name: load-balancer-before
    expression: |-
      has(oldObject.spec.type) && oldObject.spec.type == 'LoadBalancer'
  - name: made
    expression: |-
      has(oldObject.metadata.annotations) && 'k8s.cloudscale.ch/loadbalancer-uuid' in oldObject.metadata.annotations && oldObject.metadata.annotations['k8s.cloudscale.ch/loadbalancer-uuid'] != ''
variables:
  - name: annotations
    expression: |-
      has(object.metadata.annotations) ? object.metadata.annotations : {}
  - name: before
    expression: |-
      has(oldObject.metadata.annotations) ? oldObject.metadata.annotations : {}
validations:
  - expression: |-
      ('k8s.cloudscale.ch/loadbalancer-flavor' in variables.annotations ? variables.annotations['k8s.cloudscale.ch/loadbalancer-flavor'] : 'lb-standard') == ('k8s.cloudscale.ch/loadbalancer-flavor' in variables.before ? variables.before['k8s.cloudscale.ch/loadbalancer-flavor'] : 'lb-standard')
    message: |-
      k8s.cloudscale.ch/loadbalancer-flavor: the load balancer cannot change its flavor. Take the change back, or ask cloudscale.ch for it
    messageExpression: |-
      ('k8s.cloudscale.ch/loadbalancer-flavor' in variables.annotations ? variables.annotations['k8s.cloudscale.ch/loadbalancer-flavor'] : 'lb-standard').matches(r'^\P{Cc}{0,250}$') && ('k8s.cloudscale.ch/loadbalancer-flavor' in variables.before ? variables.before['k8s.cloudscale.ch/loadbalancer-flavor'] : 'lb-standard').matches(r'^\P{Cc}{0,250}$') ? 'k8s.cloudscale.ch/loadbalancer-flavor is ' + (('k8s.cloudscale.ch/loadbalancer-flavor' in variables.annotations ? variables.annotations['k8s.cloudscale.ch/loadbalancer-flavor'] : 'lb-standard') == '' ? 'not set' : '`' + ('k8s.cloudscale.ch/loadbalancer-flavor' in variables.annotations ? variables.annotations['k8s.cloudscale.ch/loadbalancer-flavor'] : 'lb-standard') + '`') + ' and was ' + (('k8s.cloudscale.ch/loadbalancer-flavor' in variables.before ? variables.before['k8s.cloudscale.ch/loadbalancer-flavor'] : 'lb-standard') == '' ? 'not set' : '`' + ('k8s.cloudscale.ch/loadbalancer-flavor' in variables.before ? variables.before['k8s.cloudscale.ch/loadbalancer-flavor'] : 'lb-standard') + '`') + ': the load balancer cannot change its flavor. Take the change back, or ask cloudscale.ch for it' : ''
  - expression: |-
      ('k8s.cloudscale.ch/loadbalancer-zone' in variables.annotations ? variables.annotations['k8s.cloudscale.ch/loadbalancer-zone'] : '') == '' || ('k8s.cloudscale.ch/loadbalancer-zone' in variables.before ? variables.before['k8s.cloudscale.ch/loadbalancer-zone'] : '') == '' || ('k8s.cloudscale.ch/loadbalancer-zone' in variables.annotations ? variables.annotations['k8s.cloudscale.ch/loadbalancer-zone'] : '') == ('k8s.cloudscale.ch/loadbalancer-zone' in variables.before ? variables.before['k8s.cloudscale.ch/loadbalancer-zone'] : '')
    message: |-
      k8s.cloudscale.ch/loadbalancer-zone: the load balancer cannot change its zone. Take the change back, or create the Service anew
    messageExpression: |-
      ('k8s.cloudscale.ch/loadbalancer-zone' in variables.annotations ? variables.annotations['k8s.cloudscale.ch/loadbalancer-zone'] : '').matches(r'^\P{Cc}{0,250}$') && ('k8s.cloudscale.ch/loadbalancer-zone' in variables.before ? variables.before['k8s.cloudscale.ch/loadbalancer-zone'] : '').matches(r'^\P{Cc}{0,250}$') ? 'k8s.cloudscale.ch/loadbalancer-zone is ' + (('k8s.cloudscale.ch/loadbalancer-zone' in variables.annotations ? variables.annotations['k8s.cloudscale.ch/loadbalancer-zone'] : '') == '' ? 'not set' : '`' + ('k8s.cloudscale.ch/loadbalancer-zone' in variables.annotations ? variables.annotations['k8s.cloudscale.ch/loadbalancer-zone'] : '') + '`') + ' and was ' + (('k8s.cloudscale.ch/loadbalancer-zone' in variables.before ? variables.before['k8s.cloudscale.ch/loadbalancer-zone'] : '') == '' ? 'not set' : '`' + ('k8s.cloudscale.ch/loadbalancer-zone' in variables.before ? variables.before['k8s.cloudscale.ch/loadbalancer-zone'] : '') + '`') + ': the load balancer cannot change its zone. Take the change back, or create the Service anew' : ''
  - expression: |-
      ('k8s.cloudscale.ch/loadbalancer-vip-addresses' in variables.annotations ? variables.annotations['k8s.cloudscale.ch/loadbalancer-vip-addresses'] : '').lowerAscii().replace(' ', '').replace('\n', '').replace('\t', '') in ['', '[]', 'null']
      || ('k8s.cloudscale.ch/loadbalancer-vip-addresses' in variables.annotations ? variables.annotations['k8s.cloudscale.ch/loadbalancer-vip-addresses'] : '').lowerAscii().replace(' ', '').replace('\n', '').replace('\t', '') == ('k8s.cloudscale.ch/loadbalancer-vip-addresses' in variables.before ? variables.before['k8s.cloudscale.ch/loadbalancer-vip-addresses'] : '').lowerAscii().replace(' ', '').replace('\n', '').replace('\t', '')
      || ('k8s.cloudscale.ch/loadbalancer-vip-addresses' in variables.annotations ? variables.annotations['k8s.cloudscale.ch/loadbalancer-vip-addresses'] : '').split('{').size() == ('k8s.cloudscale.ch/loadbalancer-vip-addresses' in variables.before ? variables.before['k8s.cloudscale.ch/loadbalancer-vip-addresses'] : '').split('{').size()
      && ('k8s.cloudscale.ch/loadbalancer-vip-addresses' in variables.annotations ? variables.annotations['k8s.cloudscale.ch/loadbalancer-vip-addresses'] : '').findAll(r'(?i)"subnet"[ \t\r\n]*:[ \t\r\n]*"[^"\\]*"').map(i, i.substring(0, size(i) - 1)).map(i, i.substring(i.lastIndexOf('"') + 1)).map(s, s.lowerAscii()) == ('k8s.cloudscale.ch/loadbalancer-vip-addresses' in variables.before ? variables.before['k8s.cloudscale.ch/loadbalancer-vip-addresses'] : '').findAll(r'(?i)"subnet"[ \t\r\n]*:[ \t\r\n]*"[^"\\]*"').map(i, i.substring(0, size(i) - 1)).map(i, i.substring(i.lastIndexOf('"') + 1)).map(s, s.lowerAscii())
      && ('k8s.cloudscale.ch/loadbalancer-vip-addresses' in variables.annotations ? variables.annotations['k8s.cloudscale.ch/loadbalancer-vip-addresses'] : '').findAll(r'(?i)"address"[ \t\r\n]*:[ \t\r\n]*"[^"\\]*"').map(i, i.substring(0, size(i) - 1)).map(i, i.substring(i.lastIndexOf('"') + 1)).all(a, isIP(a)) && ('k8s.cloudscale.ch/loadbalancer-vip-addresses' in variables.before ? variables.before['k8s.cloudscale.ch/loadbalancer-vip-addresses'] : '').findAll(r'(?i)"address"[ \t\r\n]*:[ \t\r\n]*"[^"\\]*"').map(i, i.substring(0, size(i) - 1)).map(i, i.substring(i.lastIndexOf('"') + 1)).all(a, isIP(a)) && ('k8s.cloudscale.ch/loadbalancer-vip-addresses' in variables.annotations ? variables.annotations['k8s.cloudscale.ch/loadbalancer-vip-addresses'] : '').findAll(r'(?i)"address"[ \t\r\n]*:[ \t\r\n]*"[^"\\]*"').map(i, i.substring(0, size(i) - 1)).map(i, i.substring(i.lastIndexOf('"') + 1)).map(a, string(ip(a))) == ('k8s.cloudscale.ch/loadbalancer-vip-addresses' in variables.before ? variables.before['k8s.cloudscale.ch/loadbalancer-vip-addresses'] : '').findAll(r'(?i)"address"[ \t\r\n]*:[ \t\r\n]*"[^"\\]*"').map(i, i.substring(0, size(i) - 1)).map(i, i.substring(i.lastIndexOf('"') + 1)).map(a, string(ip(a)))
    message: |-
      k8s.cloudscale.ch/loadbalancer-vip-addresses: the load balancer cannot change its addresses. Take the change back, or create the Service anew
    messageExpression: |-
      ('k8s.cloudscale.ch/loadbalancer-vip-addresses' in variables.annotations ? variables.annotations['k8s.cloudscale.ch/loadbalancer-vip-addresses'] : '').matches(r'^\P{Cc}{0,250}$') && ('k8s.cloudscale.ch/loadbalancer-vip-addresses' in variables.before ? variables.before['k8s.cloudscale.ch/loadbalancer-vip-addresses'] : '').matches(r'^\P{Cc}{0,250}$') ? 'k8s.cloudscale.ch/loadbalancer-vip-addresses is ' + (('k8s.cloudscale.ch/loadbalancer-vip-addresses' in variables.annotations ? variables.annotations['k8s.cloudscale.ch/loadbalancer-vip-addresses'] : '') == '' ? 'not set' : '`' + ('k8s.cloudscale.ch/loadbalancer-vip-addresses' in variables.annotations ? variables.annotations['k8s.cloudscale.ch/loadbalancer-vip-addresses'] : '') + '`') + ' and was ' + (('k8s.cloudscale.ch/loadbalancer-vip-addresses' in variables.before ? variables.before['k8s.cloudscale.ch/loadbalancer-vip-addresses'] : '') == '' ? 'not set' : '`' + ('k8s.cloudscale.ch/loadbalancer-vip-addresses' in variables.before ? variables.before['k8s.cloudscale.ch/loadbalancer-vip-addresses'] : '') + '`') + ': the load balancer cannot change its addresses. Take the change back, or create the Service anew' : ''
{{- end }}
{{- define "bowline.admission.phoenixnap.values" }}
# A fault in a policy must not keep Services from anybody.
failurePolicy: Ignore
matchConstraints:
  resourceRules:
    - apiGroups: [""]
      apiVersions: [v1]
      operations: [CREATE, UPDATE]
      resources: [services]
matchConditions:
  - name: load-balancer
    expression: |-
      has(object.spec.type) && object.spec.type == 'LoadBalancer'
  - name: class
    expression: |-
      {{ include "bowline.admission.class" . }}
  - name: not-being-deleted
    expression: |-
      !has(object.metadata.deletionTimestamp)
variables:
  - name: annotations
    expression: |-
      has(object.metadata.annotations) ? object.metadata.annotations : {}
  - name: isNew
    expression: |-
      oldObject == null || !has(oldObject.spec.type) || oldObject.spec.type != 'LoadBalancer'
  - name: before
    expression: |-
      !variables.isNew && has(oldObject.metadata.annotations) ? oldObject.metadata.annotations : {}
  - name: touched
    expression: |-
      variables.annotations.filter(k, !(k in variables.before) || variables.before[k] != variables.annotations[k])
  - name: known
    expression: |-
      [
        'phoenixnap.com/ip-location',
        'phoenixnap.com/ip-block-claim',
        'phoenixnap.com/kube-vip-address'
      ]
  - name: unknown
    expression: |-
      variables.touched.filter(k, !(k in variables.known) && (k.startsWith('phoenixnap.com/') && variables.known.exists(n, (n.startsWith(k) && size(k) > 15 || k.startsWith(n) || n.lowerAscii().replace('-', '').replace('_', '') == k.lowerAscii().replace('-', '').replace('_', '') || size(n) - size(k) in [-1, 0, 1] && [15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31].exists(p, p < size(n) && p < size(k) && n.substring(0, p) == k.substring(0, p) && (n.substring(p + 1) == k.substring(p) || n.substring(p) == k.substring(p + 1) || n.substring(p + 1) == k.substring(p + 1) || p + 1 < size(n) && p + 1 < size(k) && n.substring(p + 2) == k.substring(p + 2) && n.charAt(p) == k.charAt(p + 1) && n.charAt(p + 1) == k.charAt(p)))) || n.endsWith('-' + k.substring(k.indexOf('/') + 1)))
        || variables.known.exists(n, k.contains('phoenixnap') && k.endsWith(n.substring(n.indexOf('/'))))))
validations:
  - expression: |-
      size(variables.unknown) == 0
    message: |-
      an annotation that phoenixNAP does not know has no effect
    messageExpression: |-
      'annotations that phoenixNAP does not know have no effect: ' + variables.unknown.map(k,
        [variables.known.filter(n, !(n in ['phoenixnap.com/ip-block-claim', 'phoenixnap.com/kube-vip-address', 'phoenixnap.com/server-id']) && ((n.startsWith(k) && size(k) > 15 || k.startsWith(n) || n.lowerAscii().replace('-', '').replace('_', '') == k.lowerAscii().replace('-', '').replace('_', '') || size(n) - size(k) in [-1, 0, 1] && [15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31].exists(p, p < size(n) && p < size(k) && n.substring(0, p) == k.substring(0, p) && (n.substring(p + 1) == k.substring(p) || n.substring(p) == k.substring(p + 1) || n.substring(p + 1) == k.substring(p + 1) || p + 1 < size(n) && p + 1 < size(k) && n.substring(p + 2) == k.substring(p + 2) && n.charAt(p) == k.charAt(p + 1) && n.charAt(p + 1) == k.charAt(p)))) || k.contains('phoenixnap') && k.endsWith(n.substring(n.indexOf('/'))) || n.endsWith('-' + k.substring(k.indexOf('/') + 1)) || (n.contains('-' + k.substring(k.indexOf('/') + 1) + '-') || k.endsWith('-' + n.substring(n.indexOf('/') + 1)) || k.substring(k.indexOf('/') + 1).contains('-') && n.endsWith(k.substring(k.lastIndexOf('-'))))))].map(l, size(l) == 0 ? k : k + ' (is it ' + l.filter(n, size(l.filter(m, (size(m) > size(k) ? size(m) - size(k) : size(k) - size(m)) < (size(n) > size(k) ? size(n) - size(k) : size(k) - size(n)) || (size(m) > size(k) ? size(m) - size(k) : size(k) - size(m)) == (size(n) > size(k) ? size(n) - size(k) : size(k) - size(n)) && m < n)) < 3).join(' or ') + '?)')[0]).join(', ')
  - expression: |-
      !(variables.isNew || has(object.spec.loadBalancerIP) != has(oldObject.spec.loadBalancerIP) || has(object.spec.loadBalancerIP) && object.spec.loadBalancerIP != oldObject.spec.loadBalancerIP)
      || (!has(object.spec.loadBalancerIP) || object.spec.loadBalancerIP == ''
      || isIP(object.spec.loadBalancerIP.trim()) && ip(object.spec.loadBalancerIP.trim()).family() == 4)
    message: |-
      spec.loadBalancerIP must be an IPv4 address. Leave it out, and an address is allocated
  - expression: |-
      !(variables.isNew || has(object.spec.ipFamilies) != has(oldObject.spec.ipFamilies) || has(object.spec.ipFamilies) && object.spec.ipFamilies != oldObject.spec.ipFamilies)
      || (!has(object.spec.ipFamilies) || size(object.spec.ipFamilies) == 0 || 'IPv4' in object.spec.ipFamilies)
    message: |-
      spec.ipFamilies must have IPv4: IP blocks of phoenixNAP are IPv4
  - expression: |-
      !('service.beta.kubernetes.io/load-balancer-source-ranges' in variables.touched)
      || (!('service.beta.kubernetes.io/load-balancer-source-ranges' in variables.annotations) || variables.annotations['service.beta.kubernetes.io/load-balancer-source-ranges'].trim() == '')
    message: |-
      service.beta.kubernetes.io/load-balancer-source-ranges has no effect, so everybody may connect: give the networks in spec.loadBalancerSourceRanges
{{- end }}
{{- define "bowline.admission.phoenixnap.changes" }}
# A fault in a policy must not keep Services from anybody.
failurePolicy: Ignore
matchConstraints:
  resourceRules:
    - apiGroups: [""]
      apiVersions: [v1]
      operations: [UPDATE]
      resources: [services]
matchConditions:
  - name: load-balancer
    expression: |-
      has(object.spec.type) && object.spec.type == 'LoadBalancer'
  - name: class
    expression: |-
      {{ include "bowline.admission.class" . }}
  - name: not-being-deleted
    expression: |-
      !has(object.metadata.deletionTimestamp)
  - name: load-balancer-before
    expression: |-
      has(oldObject.spec.type) && oldObject.spec.type == 'LoadBalancer'
  - name: made
    expression: |-
      has(oldObject.spec.loadBalancerIP) && oldObject.spec.loadBalancerIP != '' && has(oldObject.status) && has(oldObject.status.loadBalancer) && has(oldObject.status.loadBalancer.ingress) && size(oldObject.status.loadBalancer.ingress) > 0
variables:
  - name: annotations
    expression: |-
      has(object.metadata.annotations) ? object.metadata.annotations : {}
  - name: before
    expression: |-
      has(oldObject.metadata.annotations) ? oldObject.metadata.annotations : {}
validations:
  - expression: |-
      ('phoenixnap.com/ip-location' in variables.annotations ? variables.annotations['phoenixnap.com/ip-location'] : '') == '' || ('phoenixnap.com/ip-location' in variables.annotations ? variables.annotations['phoenixnap.com/ip-location'] : '') == ('phoenixnap.com/ip-location' in variables.before ? variables.before['phoenixnap.com/ip-location'] : '')
    message: |-
      phoenixnap.com/ip-location: the IP block is bought, and stays where it is. Create the Service anew
    messageExpression: |-
      ('phoenixnap.com/ip-location' in variables.annotations ? variables.annotations['phoenixnap.com/ip-location'] : '').matches(r'^\P{Cc}{0,250}$') && ('phoenixnap.com/ip-location' in variables.before ? variables.before['phoenixnap.com/ip-location'] : '').matches(r'^\P{Cc}{0,250}$') ? 'phoenixnap.com/ip-location is ' + (('phoenixnap.com/ip-location' in variables.annotations ? variables.annotations['phoenixnap.com/ip-location'] : '') == '' ? 'not set' : '`' + ('phoenixnap.com/ip-location' in variables.annotations ? variables.annotations['phoenixnap.com/ip-location'] : '') + '`') + ' and was ' + (('phoenixnap.com/ip-location' in variables.before ? variables.before['phoenixnap.com/ip-location'] : '') == '' ? 'not set' : '`' + ('phoenixnap.com/ip-location' in variables.before ? variables.before['phoenixnap.com/ip-location'] : '') + '`') + ': the IP block is bought, and stays where it is. Create the Service anew' : ''
  - expression: |-
      !has(object.spec.loadBalancerIP) || object.spec.loadBalancerIP == ''
      || !isIP(object.spec.loadBalancerIP.trim()) || !isIP(oldObject.spec.loadBalancerIP.trim())
      || (object.spec.loadBalancerIP.trim() == oldObject.spec.loadBalancerIP.trim() || isIP(object.spec.loadBalancerIP.trim()) && isIP(oldObject.spec.loadBalancerIP.trim()) && ip(object.spec.loadBalancerIP.trim()) == ip(oldObject.spec.loadBalancerIP.trim()))
      || cidr(oldObject.spec.loadBalancerIP.trim() + '/29').masked().containsIP(ip(object.spec.loadBalancerIP.trim()))
    message: |-
      spec.loadBalancerIP: the IP block is bought, and this address is not in it. Take the change back, or create the Service anew
{{- end }}
{{- define "bowline.admission.cloudstack.values" }}
# A fault in a policy must not keep Services from anybody.
failurePolicy: Ignore
matchConstraints:
  resourceRules:
    - apiGroups: [""]
      apiVersions: [v1]
      operations: [CREATE, UPDATE]
      resources: [services]
matchConditions:
  - name: load-balancer
    expression: |-
      has(object.spec.type) && object.spec.type == 'LoadBalancer'
  - name: class
    expression: |-
      {{ include "bowline.admission.class" . }}
  - name: not-being-deleted
    expression: |-
      !has(object.metadata.deletionTimestamp)
variables:
  - name: annotations
    expression: |-
      has(object.metadata.annotations) ? object.metadata.annotations : {}
  - name: isNew
    expression: |-
      oldObject == null || !has(oldObject.spec.type) || oldObject.spec.type != 'LoadBalancer'
  - name: before
    expression: |-
      !variables.isNew && has(oldObject.metadata.annotations) ? oldObject.metadata.annotations : {}
  - name: touched
    expression: |-
      variables.annotations.filter(k, !(k in variables.before) || variables.before[k] != variables.annotations[k])
  - name: known
    expression: |-
      [
        'service.beta.kubernetes.io/cloudstack-load-balancer-proxy-protocol',
        'service.beta.kubernetes.io/cloudstack-load-balancer-hostname',
        'service.beta.kubernetes.io/cloudstack-load-balancer-ip-mode',
        'service.beta.kubernetes.io/cloudstack-load-balancer-address',
        'service.beta.kubernetes.io/cloudstack-load-balancer-keep-ip',
        'service.beta.kubernetes.io/cloudstack-load-balancer-source-cidrs',
        'service.beta.kubernetes.io/cloudstack-load-balancer-stickyness-method-name',
        'service.beta.kubernetes.io/cloudstack-load-balancer-stickyness-method-param',
        'service.beta.kubernetes.io/cloudstack-load-balancer-id',
        'service.beta.kubernetes.io/cloudstack-load-balancer-network-id',
        'service.beta.kubernetes.io/cloudstack-load-balancer-ip-associated-by-controller',
        'service.beta.kubernetes.io/cloudstack-load-balancer-ip-ids',
        'service.beta.kubernetes.io/cloudstack-load-balancer-ip-networks',
        'service.beta.kubernetes.io/cloudstack-load-balancer-sticky-policies',
        'service.beta.kubernetes.io/cloudstack-load-balancer-acl-sources',
        'service.beta.kubernetes.io/cloudstack-load-balancer-replaced-rules'
      ]
  - name: unknown
    expression: |-
      variables.touched.filter(k, !(k in variables.known) && (k.startsWith('service.beta.kubernetes.io/cloudstack-')
        || k.startsWith('service.beta.kubernetes.io/') && variables.known.exists(n, (n.startsWith(k) && size(k) > 27 || k.startsWith(n) || n.lowerAscii().replace('-', '').replace('_', '') == k.lowerAscii().replace('-', '').replace('_', '') || size(n) - size(k) in [-1, 0, 1] && [27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63, 64, 65, 66, 67, 68, 69, 70, 71, 72, 73, 74, 75, 76, 77, 78, 79].exists(p, p < size(n) && p < size(k) && n.substring(0, p) == k.substring(0, p) && (n.substring(p + 1) == k.substring(p) || n.substring(p) == k.substring(p + 1) || n.substring(p + 1) == k.substring(p + 1) || p + 1 < size(n) && p + 1 < size(k) && n.substring(p + 2) == k.substring(p + 2) && n.charAt(p) == k.charAt(p + 1) && n.charAt(p + 1) == k.charAt(p)))) || n.endsWith('-' + k.substring(k.indexOf('/') + 1)))
        || variables.known.exists(n, k.contains('cloudstack') && k.endsWith(n.substring(n.indexOf('/'))))))
validations:
  - expression: |-
      size(variables.unknown) == 0
    message: |-
      an annotation that Apache CloudStack does not know has no effect
    messageExpression: |-
      'annotations that Apache CloudStack does not know have no effect: ' + variables.unknown.map(k,
        [variables.known.filter(n, !(n in ['service.beta.kubernetes.io/cloudstack-load-balancer-id', 'service.beta.kubernetes.io/cloudstack-load-balancer-network-id', 'service.beta.kubernetes.io/cloudstack-load-balancer-ip-associated-by-controller', 'service.beta.kubernetes.io/cloudstack-load-balancer-ip-ids', 'service.beta.kubernetes.io/cloudstack-load-balancer-ip-networks', 'service.beta.kubernetes.io/cloudstack-load-balancer-sticky-policies', 'service.beta.kubernetes.io/cloudstack-load-balancer-acl-sources', 'service.beta.kubernetes.io/cloudstack-load-balancer-replaced-rules']) && ((n.startsWith(k) && size(k) > 27 || k.startsWith(n) || n.lowerAscii().replace('-', '').replace('_', '') == k.lowerAscii().replace('-', '').replace('_', '') || size(n) - size(k) in [-1, 0, 1] && [27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63, 64, 65, 66, 67, 68, 69, 70, 71, 72, 73, 74, 75, 76, 77, 78, 79].exists(p, p < size(n) && p < size(k) && n.substring(0, p) == k.substring(0, p) && (n.substring(p + 1) == k.substring(p) || n.substring(p) == k.substring(p + 1) || n.substring(p + 1) == k.substring(p + 1) || p + 1 < size(n) && p + 1 < size(k) && n.substring(p + 2) == k.substring(p + 2) && n.charAt(p) == k.charAt(p + 1) && n.charAt(p + 1) == k.charAt(p)))) || k.contains('cloudstack') && k.endsWith(n.substring(n.indexOf('/'))) || n.endsWith('-' + k.substring(k.indexOf('/') + 1)) || (n.contains('-' + k.substring(k.indexOf('/') + 1) + '-') || k.endsWith('-' + n.substring(n.indexOf('/') + 1)) || k.substring(k.indexOf('/') + 1).contains('-') && n.endsWith(k.substring(k.lastIndexOf('-'))))))].map(l, size(l) == 0 ? k : k + ' (is it ' + l.filter(n, size(l.filter(m, (size(m) > size(k) ? size(m) - size(k) : size(k) - size(m)) < (size(n) > size(k) ? size(n) - size(k) : size(k) - size(n)) || (size(m) > size(k) ? size(m) - size(k) : size(k) - size(m)) == (size(n) > size(k) ? size(n) - size(k) : size(k) - size(n)) && m < n)) < 3).join(' or ') + '?)')[0]).join(', ')
  - expression: |-
      !('service.beta.kubernetes.io/cloudstack-load-balancer-proxy-protocol' in variables.touched)
      || (variables.annotations['service.beta.kubernetes.io/cloudstack-load-balancer-proxy-protocol'].trim() in ['true', 'false'])
    message: |-
      service.beta.kubernetes.io/cloudstack-load-balancer-proxy-protocol must be one of: true, false
    messageExpression: |-
      variables.annotations['service.beta.kubernetes.io/cloudstack-load-balancer-proxy-protocol'].matches(r'^\P{Cc}{0,250}$') ? 'service.beta.kubernetes.io/cloudstack-load-balancer-proxy-protocol is `' + variables.annotations['service.beta.kubernetes.io/cloudstack-load-balancer-proxy-protocol'] + '` and must be one of: true, false' : ''
  - expression: |-
      !('service.beta.kubernetes.io/cloudstack-load-balancer-hostname' in variables.touched)
      || (variables.annotations['service.beta.kubernetes.io/cloudstack-load-balancer-hostname'].trim() == '' || size(variables.annotations['service.beta.kubernetes.io/cloudstack-load-balancer-hostname'].trim()) <= 253 && variables.annotations['service.beta.kubernetes.io/cloudstack-load-balancer-hostname'].trim().matches(r'^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$') && !isIP(variables.annotations['service.beta.kubernetes.io/cloudstack-load-balancer-hostname'].trim()))
    message: |-
      service.beta.kubernetes.io/cloudstack-load-balancer-hostname must be a DNS name in lower case, such as www.example.org
    messageExpression: |-
      variables.annotations['service.beta.kubernetes.io/cloudstack-load-balancer-hostname'].matches(r'^\P{Cc}{0,250}$') ? 'service.beta.kubernetes.io/cloudstack-load-balancer-hostname is `' + variables.annotations['service.beta.kubernetes.io/cloudstack-load-balancer-hostname'] + '` and must be a DNS name in lower case, such as www.example.org' : ''
  - expression: |-
      !('service.beta.kubernetes.io/cloudstack-load-balancer-ip-mode' in variables.touched)
      || (variables.annotations['service.beta.kubernetes.io/cloudstack-load-balancer-ip-mode'].trim() in ['', 'Proxy', 'VIP'])
    message: |-
      service.beta.kubernetes.io/cloudstack-load-balancer-ip-mode must be one of: Proxy, VIP
    messageExpression: |-
      variables.annotations['service.beta.kubernetes.io/cloudstack-load-balancer-ip-mode'].matches(r'^\P{Cc}{0,250}$') ? 'service.beta.kubernetes.io/cloudstack-load-balancer-ip-mode is `' + variables.annotations['service.beta.kubernetes.io/cloudstack-load-balancer-ip-mode'] + '` and must be one of: Proxy, VIP' : ''
  - expression: |-
      !('service.beta.kubernetes.io/cloudstack-load-balancer-address' in variables.touched)
      || (variables.annotations['service.beta.kubernetes.io/cloudstack-load-balancer-address'].trim() == '' || (isIP(variables.annotations['service.beta.kubernetes.io/cloudstack-load-balancer-address'].trim()) || variables.annotations['service.beta.kubernetes.io/cloudstack-load-balancer-address'].trim().matches(r'^[0:]*:[fF]{4}:')))
    message: |-
      service.beta.kubernetes.io/cloudstack-load-balancer-address must be an IP address
    messageExpression: |-
      variables.annotations['service.beta.kubernetes.io/cloudstack-load-balancer-address'].matches(r'^\P{Cc}{0,250}$') ? 'service.beta.kubernetes.io/cloudstack-load-balancer-address is `' + variables.annotations['service.beta.kubernetes.io/cloudstack-load-balancer-address'] + '` and must be an IP address' : ''
  - expression: |-
      !('service.beta.kubernetes.io/cloudstack-load-balancer-keep-ip' in variables.touched)
      || (variables.annotations['service.beta.kubernetes.io/cloudstack-load-balancer-keep-ip'].trim() in ['true', 'false'])
    message: |-
      service.beta.kubernetes.io/cloudstack-load-balancer-keep-ip must be one of: true, false
    messageExpression: |-
      variables.annotations['service.beta.kubernetes.io/cloudstack-load-balancer-keep-ip'].matches(r'^\P{Cc}{0,250}$') ? 'service.beta.kubernetes.io/cloudstack-load-balancer-keep-ip is `' + variables.annotations['service.beta.kubernetes.io/cloudstack-load-balancer-keep-ip'] + '` and must be one of: true, false' : ''
  - expression: |-
      !('service.beta.kubernetes.io/cloudstack-load-balancer-source-cidrs' in variables.touched)
      || (variables.annotations['service.beta.kubernetes.io/cloudstack-load-balancer-source-cidrs'] == '' || variables.annotations['service.beta.kubernetes.io/cloudstack-load-balancer-source-cidrs'].split(',').all(i, (isCIDR(i.trim()) || i.trim().matches(r'^[0-9A-Fa-f:.]+/[0-9]{1,3}$') && i.trim().matches(r'(^|[./])0[0-9]|:.*\.|^[0:]*:[fF]{4}:'))))
    message: |-
      service.beta.kubernetes.io/cloudstack-load-balancer-source-cidrs must be networks in CIDR notation with commas between them, such as 192.0.2.0/24,198.51.100.0/24
    messageExpression: |-
      variables.annotations['service.beta.kubernetes.io/cloudstack-load-balancer-source-cidrs'].matches(r'^\P{Cc}{0,250}$') ? 'service.beta.kubernetes.io/cloudstack-load-balancer-source-cidrs is `' + variables.annotations['service.beta.kubernetes.io/cloudstack-load-balancer-source-cidrs'] + '` and must be networks in CIDR notation with commas between them, such as 192.0.2.0/24,198.51.100.0/24' : ''
  - expression: |-
      !('service.beta.kubernetes.io/cloudstack-load-balancer-stickyness-method-name' in variables.touched)
      || (variables.annotations['service.beta.kubernetes.io/cloudstack-load-balancer-stickyness-method-name'].trim().lowerAscii() in ['', 'lbcookie', 'appcookie', 'sourcebased'])
    message: |-
      service.beta.kubernetes.io/cloudstack-load-balancer-stickyness-method-name must be one of: LbCookie, AppCookie, SourceBased
    messageExpression: |-
      variables.annotations['service.beta.kubernetes.io/cloudstack-load-balancer-stickyness-method-name'].matches(r'^\P{Cc}{0,250}$') ? 'service.beta.kubernetes.io/cloudstack-load-balancer-stickyness-method-name is `' + variables.annotations['service.beta.kubernetes.io/cloudstack-load-balancer-stickyness-method-name'] + '` and must be one of: LbCookie, AppCookie, SourceBased' : ''
  - expression: |-
      !(variables.isNew || has(object.spec.ports) != has(oldObject.spec.ports) || has(object.spec.ports) && object.spec.ports != oldObject.spec.ports)
      || (!has(object.spec.ports) || object.spec.ports.all(p, !has(p.protocol) || p.protocol in ['TCP', 'UDP']))
    message: |-
      spec.ports: a load balancer of Apache CloudStack takes the protocols TCP and UDP only
  - expression: |-
      !(variables.isNew || has(object.spec.allocateLoadBalancerNodePorts) != has(oldObject.spec.allocateLoadBalancerNodePorts) || has(object.spec.allocateLoadBalancerNodePorts) && object.spec.allocateLoadBalancerNodePorts != oldObject.spec.allocateLoadBalancerNodePorts)
      || (!has(object.spec.allocateLoadBalancerNodePorts) || object.spec.allocateLoadBalancerNodePorts
      || has(object.spec.ports) && object.spec.ports.all(p, has(p.nodePort) && p.nodePort != 0))
    message: |-
      spec.allocateLoadBalancerNodePorts is false, and the load balancer reaches its members by their node ports: leave it out
  - expression: |-
      !(variables.isNew || has(object.spec.loadBalancerIP) != has(oldObject.spec.loadBalancerIP) || has(object.spec.loadBalancerIP) && object.spec.loadBalancerIP != oldObject.spec.loadBalancerIP)
      || (!has(object.spec.loadBalancerIP) || object.spec.loadBalancerIP.trim() == ''
      || isIP(object.spec.loadBalancerIP.trim()))
    message: |-
      spec.loadBalancerIP must be an IP address. Leave it out, and an address is allocated
  - expression: |-
      !(variables.isNew || has(object.spec.ipFamilies) != has(oldObject.spec.ipFamilies) || has(object.spec.ipFamilies) && object.spec.ipFamilies != oldObject.spec.ipFamilies)
      || (!has(object.spec.ipFamilies) || size(object.spec.ipFamilies) == 0 || 'IPv4' in object.spec.ipFamilies)
    message: |-
      spec.ipFamilies must have IPv4: public addresses of Apache CloudStack are IPv4
  - expression: |-
      !('service.beta.kubernetes.io/load-balancer-source-ranges' in variables.touched)
      || (!('service.beta.kubernetes.io/load-balancer-source-ranges' in variables.annotations) || variables.annotations['service.beta.kubernetes.io/load-balancer-source-ranges'].trim() == '')
    message: |-
      service.beta.kubernetes.io/load-balancer-source-ranges has no effect, so everybody may connect: give the networks in spec.loadBalancerSourceRanges
{{- end }}
{{- define "bowline.admission.cloudstack.changes" }}
{{- end }}
{{- define "bowline.admission.openstack.values" }}
# A fault in a policy must not keep Services from anybody.
failurePolicy: Ignore
matchConstraints:
  resourceRules:
    - apiGroups: [""]
      apiVersions: [v1]
      operations: [CREATE, UPDATE]
      resources: [services]
matchConditions:
  - name: load-balancer
    expression: |-
      has(object.spec.type) && object.spec.type == 'LoadBalancer'
  - name: class
    expression: |-
      {{ include "bowline.admission.class" . }}
  - name: not-being-deleted
    expression: |-
      !has(object.metadata.deletionTimestamp)
variables:
  - name: annotations
    expression: |-
      has(object.metadata.annotations) ? object.metadata.annotations : {}
  - name: isNew
    expression: |-
      oldObject == null || !has(oldObject.spec.type) || oldObject.spec.type != 'LoadBalancer'
  - name: before
    expression: |-
      !variables.isNew && has(oldObject.metadata.annotations) ? oldObject.metadata.annotations : {}
  - name: touched
    expression: |-
      variables.annotations.filter(k, !(k in variables.before) || variables.before[k] != variables.annotations[k])
  - name: known
    expression: |-
      [
        'service.beta.kubernetes.io/openstack-internal-load-balancer',
        'loadbalancer.openstack.org/load-balancer-id',
        'loadbalancer.openstack.org/load-balancer-address',
        'loadbalancer.openstack.org/class',
        'loadbalancer.openstack.org/network-id',
        'loadbalancer.openstack.org/subnet-id',
        'loadbalancer.openstack.org/member-subnet-id',
        'loadbalancer.openstack.org/port-id',
        'loadbalancer.openstack.org/floating-network-id',
        'loadbalancer.openstack.org/floating-subnet-id',
        'loadbalancer.openstack.org/floating-subnet',
        'loadbalancer.openstack.org/floating-subnet-tags',
        'loadbalancer.openstack.org/keep-floatingip',
        'loadbalancer.openstack.org/proxy-protocol',
        'loadbalancer.openstack.org/x-forwarded-for',
        'loadbalancer.openstack.org/default-tls-container-ref',
        'loadbalancer.openstack.org/connection-limit',
        'loadbalancer.openstack.org/timeout-client-data',
        'loadbalancer.openstack.org/timeout-member-connect',
        'loadbalancer.openstack.org/timeout-member-data',
        'loadbalancer.openstack.org/timeout-tcp-inspect',
        'loadbalancer.openstack.org/lb-method',
        'loadbalancer.openstack.org/flavor-id',
        'loadbalancer.openstack.org/availability-zone',
        'loadbalancer.openstack.org/enable-health-monitor',
        'loadbalancer.openstack.org/health-monitor-delay',
        'loadbalancer.openstack.org/health-monitor-timeout',
        'loadbalancer.openstack.org/health-monitor-max-retries',
        'loadbalancer.openstack.org/health-monitor-max-retries-down',
        'loadbalancer.openstack.org/load-balancer-tags',
        'loadbalancer.openstack.org/listener-tags',
        'loadbalancer.openstack.org/pool-tags',
        'loadbalancer.openstack.org/added-tags',
        'loadbalancer.openstack.org/node-selector',
        'loadbalancer.openstack.org/hostname',
        'service.beta.kubernetes.io/load-balancer-source-ranges'
      ]
  - name: unknown
    expression: |-
      variables.touched.filter(k, !(k in variables.known) && (k.startsWith('loadbalancer.openstack.org/')
        || k.startsWith('service.beta.kubernetes.io/openstack-')
        || k.startsWith('service.beta.kubernetes.io/') && variables.known.exists(n, (n.startsWith(k) && size(k) > 27 || k.startsWith(n) || n.lowerAscii().replace('-', '').replace('_', '') == k.lowerAscii().replace('-', '').replace('_', '') || size(n) - size(k) in [-1, 0, 1] && [27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59].exists(p, p < size(n) && p < size(k) && n.substring(0, p) == k.substring(0, p) && (n.substring(p + 1) == k.substring(p) || n.substring(p) == k.substring(p + 1) || n.substring(p + 1) == k.substring(p + 1) || p + 1 < size(n) && p + 1 < size(k) && n.substring(p + 2) == k.substring(p + 2) && n.charAt(p) == k.charAt(p + 1) && n.charAt(p + 1) == k.charAt(p)))) || n.endsWith('-' + k.substring(k.indexOf('/') + 1)))
        || variables.known.exists(n, k.contains('openstack') && k.endsWith(n.substring(n.indexOf('/'))))))
validations:
  - expression: |-
      size(variables.unknown) == 0
    message: |-
      an annotation that OpenStack does not know has no effect
    messageExpression: |-
      'annotations that OpenStack does not know have no effect: ' + variables.unknown.map(k,
        [variables.known.filter(n, !(n in ['loadbalancer.openstack.org/load-balancer-id', 'loadbalancer.openstack.org/load-balancer-address', 'loadbalancer.openstack.org/added-tags']) && ((n.startsWith(k) && size(k) > 27 || k.startsWith(n) || n.lowerAscii().replace('-', '').replace('_', '') == k.lowerAscii().replace('-', '').replace('_', '') || size(n) - size(k) in [-1, 0, 1] && [27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59].exists(p, p < size(n) && p < size(k) && n.substring(0, p) == k.substring(0, p) && (n.substring(p + 1) == k.substring(p) || n.substring(p) == k.substring(p + 1) || n.substring(p + 1) == k.substring(p + 1) || p + 1 < size(n) && p + 1 < size(k) && n.substring(p + 2) == k.substring(p + 2) && n.charAt(p) == k.charAt(p + 1) && n.charAt(p + 1) == k.charAt(p)))) || k.contains('openstack') && k.endsWith(n.substring(n.indexOf('/'))) || n.endsWith('-' + k.substring(k.indexOf('/') + 1)) || (n.contains('-' + k.substring(k.indexOf('/') + 1) + '-') || k.endsWith('-' + n.substring(n.indexOf('/') + 1)) || k.substring(k.indexOf('/') + 1).contains('-') && n.endsWith(k.substring(k.lastIndexOf('-'))))))].map(l, size(l) == 0 ? k : k + ' (is it ' + l.filter(n, size(l.filter(m, (size(m) > size(k) ? size(m) - size(k) : size(k) - size(m)) < (size(n) > size(k) ? size(n) - size(k) : size(k) - size(n)) || (size(m) > size(k) ? size(m) - size(k) : size(k) - size(m)) == (size(n) > size(k) ? size(n) - size(k) : size(k) - size(n)) && m < n)) < 3).join(' or ') + '?)')[0]).join(', ')
  - expression: |-
      !('service.beta.kubernetes.io/openstack-internal-load-balancer' in variables.touched)
      || (variables.annotations['service.beta.kubernetes.io/openstack-internal-load-balancer'].trim() in ['true', 'false'])
    message: |-
      service.beta.kubernetes.io/openstack-internal-load-balancer must be one of: true, false
    messageExpression: |-
      variables.annotations['service.beta.kubernetes.io/openstack-internal-load-balancer'].matches(r'^\P{Cc}{0,250}$') ? 'service.beta.kubernetes.io/openstack-internal-load-balancer is `' + variables.annotations['service.beta.kubernetes.io/openstack-internal-load-balancer'] + '` and must be one of: true, false' : ''
  - expression: |-
      !('loadbalancer.openstack.org/keep-floatingip' in variables.touched)
      || (variables.annotations['loadbalancer.openstack.org/keep-floatingip'].trim() in ['true', 'false'])
    message: |-
      loadbalancer.openstack.org/keep-floatingip must be one of: true, false
    messageExpression: |-
      variables.annotations['loadbalancer.openstack.org/keep-floatingip'].matches(r'^\P{Cc}{0,250}$') ? 'loadbalancer.openstack.org/keep-floatingip is `' + variables.annotations['loadbalancer.openstack.org/keep-floatingip'] + '` and must be one of: true, false' : ''
  - expression: |-
      !('loadbalancer.openstack.org/proxy-protocol' in variables.touched)
      || (variables.annotations['loadbalancer.openstack.org/proxy-protocol'].trim() in ['true', 'v1', 'v2', 'false', ''])
    message: |-
      loadbalancer.openstack.org/proxy-protocol must be one of: true, v1, v2, false
    messageExpression: |-
      variables.annotations['loadbalancer.openstack.org/proxy-protocol'].matches(r'^\P{Cc}{0,250}$') ? 'loadbalancer.openstack.org/proxy-protocol is `' + variables.annotations['loadbalancer.openstack.org/proxy-protocol'] + '` and must be one of: true, v1, v2, false' : ''
  - expression: |-
      !('loadbalancer.openstack.org/x-forwarded-for' in variables.touched)
      || (variables.annotations['loadbalancer.openstack.org/x-forwarded-for'].trim() in ['true', 'false'])
    message: |-
      loadbalancer.openstack.org/x-forwarded-for must be one of: true, false
    messageExpression: |-
      variables.annotations['loadbalancer.openstack.org/x-forwarded-for'].matches(r'^\P{Cc}{0,250}$') ? 'loadbalancer.openstack.org/x-forwarded-for is `' + variables.annotations['loadbalancer.openstack.org/x-forwarded-for'] + '` and must be one of: true, false' : ''
  - expression: |-
      !('loadbalancer.openstack.org/connection-limit' in variables.touched)
      || (variables.annotations['loadbalancer.openstack.org/connection-limit'].trim().matches(r'^[-+]?0*[0-9]{1,18}$') ? int(variables.annotations['loadbalancer.openstack.org/connection-limit'].trim()) >= -1 && int(variables.annotations['loadbalancer.openstack.org/connection-limit'].trim()) <= 2147483647 : false)
    message: |-
      loadbalancer.openstack.org/connection-limit must be a whole number from -1 to 2147483647
    messageExpression: |-
      variables.annotations['loadbalancer.openstack.org/connection-limit'].matches(r'^\P{Cc}{0,250}$') ? 'loadbalancer.openstack.org/connection-limit is `' + variables.annotations['loadbalancer.openstack.org/connection-limit'] + '` and must be a whole number from -1 to 2147483647' : ''
  - expression: |-
      !('loadbalancer.openstack.org/timeout-client-data' in variables.touched)
      || (variables.annotations['loadbalancer.openstack.org/timeout-client-data'].trim().matches(r'^[-+]?0*[0-9]{1,18}$') ? int(variables.annotations['loadbalancer.openstack.org/timeout-client-data'].trim()) >= 0 && int(variables.annotations['loadbalancer.openstack.org/timeout-client-data'].trim()) <= 2073600000 : false)
    message: |-
      loadbalancer.openstack.org/timeout-client-data must be a whole number from 0 to 2073600000
    messageExpression: |-
      variables.annotations['loadbalancer.openstack.org/timeout-client-data'].matches(r'^\P{Cc}{0,250}$') ? 'loadbalancer.openstack.org/timeout-client-data is `' + variables.annotations['loadbalancer.openstack.org/timeout-client-data'] + '` and must be a whole number from 0 to 2073600000' : ''
  - expression: |-
      !('loadbalancer.openstack.org/timeout-member-connect' in variables.touched)
      || (variables.annotations['loadbalancer.openstack.org/timeout-member-connect'].trim().matches(r'^[-+]?0*[0-9]{1,18}$') ? int(variables.annotations['loadbalancer.openstack.org/timeout-member-connect'].trim()) >= 0 && int(variables.annotations['loadbalancer.openstack.org/timeout-member-connect'].trim()) <= 2073600000 : false)
    message: |-
      loadbalancer.openstack.org/timeout-member-connect must be a whole number from 0 to 2073600000
    messageExpression: |-
      variables.annotations['loadbalancer.openstack.org/timeout-member-connect'].matches(r'^\P{Cc}{0,250}$') ? 'loadbalancer.openstack.org/timeout-member-connect is `' + variables.annotations['loadbalancer.openstack.org/timeout-member-connect'] + '` and must be a whole number from 0 to 2073600000' : ''
  - expression: |-
      !('loadbalancer.openstack.org/timeout-member-data' in variables.touched)
      || (variables.annotations['loadbalancer.openstack.org/timeout-member-data'].trim().matches(r'^[-+]?0*[0-9]{1,18}$') ? int(variables.annotations['loadbalancer.openstack.org/timeout-member-data'].trim()) >= 0 && int(variables.annotations['loadbalancer.openstack.org/timeout-member-data'].trim()) <= 2073600000 : false)
    message: |-
      loadbalancer.openstack.org/timeout-member-data must be a whole number from 0 to 2073600000
    messageExpression: |-
      variables.annotations['loadbalancer.openstack.org/timeout-member-data'].matches(r'^\P{Cc}{0,250}$') ? 'loadbalancer.openstack.org/timeout-member-data is `' + variables.annotations['loadbalancer.openstack.org/timeout-member-data'] + '` and must be a whole number from 0 to 2073600000' : ''
  - expression: |-
      !('loadbalancer.openstack.org/timeout-tcp-inspect' in variables.touched)
      || (variables.annotations['loadbalancer.openstack.org/timeout-tcp-inspect'].trim().matches(r'^[-+]?0*[0-9]{1,18}$') ? int(variables.annotations['loadbalancer.openstack.org/timeout-tcp-inspect'].trim()) >= 0 && int(variables.annotations['loadbalancer.openstack.org/timeout-tcp-inspect'].trim()) <= 2073600000 : false)
    message: |-
      loadbalancer.openstack.org/timeout-tcp-inspect must be a whole number from 0 to 2073600000
    messageExpression: |-
      variables.annotations['loadbalancer.openstack.org/timeout-tcp-inspect'].matches(r'^\P{Cc}{0,250}$') ? 'loadbalancer.openstack.org/timeout-tcp-inspect is `' + variables.annotations['loadbalancer.openstack.org/timeout-tcp-inspect'] + '` and must be a whole number from 0 to 2073600000' : ''
  - expression: |-
      !('loadbalancer.openstack.org/lb-method' in variables.touched)
      || (variables.annotations['loadbalancer.openstack.org/lb-method'].trim() in ['ROUND_ROBIN', 'LEAST_CONNECTIONS', 'SOURCE_IP', 'SOURCE_IP_PORT'])
    message: |-
      loadbalancer.openstack.org/lb-method must be one of: ROUND_ROBIN, LEAST_CONNECTIONS, SOURCE_IP, SOURCE_IP_PORT
    messageExpression: |-
      variables.annotations['loadbalancer.openstack.org/lb-method'].matches(r'^\P{Cc}{0,250}$') ? 'loadbalancer.openstack.org/lb-method is `' + variables.annotations['loadbalancer.openstack.org/lb-method'] + '` and must be one of: ROUND_ROBIN, LEAST_CONNECTIONS, SOURCE_IP, SOURCE_IP_PORT' : ''
  - expression: |-
      !('loadbalancer.openstack.org/enable-health-monitor' in variables.touched)
      || (variables.annotations['loadbalancer.openstack.org/enable-health-monitor'].trim() in ['true', 'false'])
    message: |-
      loadbalancer.openstack.org/enable-health-monitor must be one of: true, false
    messageExpression: |-
      variables.annotations['loadbalancer.openstack.org/enable-health-monitor'].matches(r'^\P{Cc}{0,250}$') ? 'loadbalancer.openstack.org/enable-health-monitor is `' + variables.annotations['loadbalancer.openstack.org/enable-health-monitor'] + '` and must be one of: true, false' : ''
  - expression: |-
      !('loadbalancer.openstack.org/health-monitor-delay' in variables.touched)
      || (variables.annotations['loadbalancer.openstack.org/health-monitor-delay'].trim().matches(r'^[-+]?0*[0-9]{1,18}$') ? int(variables.annotations['loadbalancer.openstack.org/health-monitor-delay'].trim()) >= 0 && int(variables.annotations['loadbalancer.openstack.org/health-monitor-delay'].trim()) <= 2147483647 : false)
    message: |-
      loadbalancer.openstack.org/health-monitor-delay must be a whole number from 0 to 2147483647
    messageExpression: |-
      variables.annotations['loadbalancer.openstack.org/health-monitor-delay'].matches(r'^\P{Cc}{0,250}$') ? 'loadbalancer.openstack.org/health-monitor-delay is `' + variables.annotations['loadbalancer.openstack.org/health-monitor-delay'] + '` and must be a whole number from 0 to 2147483647' : ''
  - expression: |-
      !('loadbalancer.openstack.org/health-monitor-timeout' in variables.touched)
      || (variables.annotations['loadbalancer.openstack.org/health-monitor-timeout'].trim().matches(r'^[-+]?0*[0-9]{1,18}$') ? int(variables.annotations['loadbalancer.openstack.org/health-monitor-timeout'].trim()) >= 0 && int(variables.annotations['loadbalancer.openstack.org/health-monitor-timeout'].trim()) <= 2147483647 : false)
    message: |-
      loadbalancer.openstack.org/health-monitor-timeout must be a whole number from 0 to 2147483647
    messageExpression: |-
      variables.annotations['loadbalancer.openstack.org/health-monitor-timeout'].matches(r'^\P{Cc}{0,250}$') ? 'loadbalancer.openstack.org/health-monitor-timeout is `' + variables.annotations['loadbalancer.openstack.org/health-monitor-timeout'] + '` and must be a whole number from 0 to 2147483647' : ''
  - expression: |-
      !('loadbalancer.openstack.org/health-monitor-max-retries' in variables.touched)
      || (variables.annotations['loadbalancer.openstack.org/health-monitor-max-retries'].trim().matches(r'^[-+]?0*[0-9]{1,18}$') ? int(variables.annotations['loadbalancer.openstack.org/health-monitor-max-retries'].trim()) >= 1 && int(variables.annotations['loadbalancer.openstack.org/health-monitor-max-retries'].trim()) <= 10 : false)
    message: |-
      loadbalancer.openstack.org/health-monitor-max-retries must be a whole number from 1 to 10
    messageExpression: |-
      variables.annotations['loadbalancer.openstack.org/health-monitor-max-retries'].matches(r'^\P{Cc}{0,250}$') ? 'loadbalancer.openstack.org/health-monitor-max-retries is `' + variables.annotations['loadbalancer.openstack.org/health-monitor-max-retries'] + '` and must be a whole number from 1 to 10' : ''
  - expression: |-
      !('loadbalancer.openstack.org/health-monitor-max-retries-down' in variables.touched)
      || (variables.annotations['loadbalancer.openstack.org/health-monitor-max-retries-down'].trim().matches(r'^[-+]?0*[0-9]{1,18}$') ? int(variables.annotations['loadbalancer.openstack.org/health-monitor-max-retries-down'].trim()) >= 1 && int(variables.annotations['loadbalancer.openstack.org/health-monitor-max-retries-down'].trim()) <= 10 : false)
    message: |-
      loadbalancer.openstack.org/health-monitor-max-retries-down must be a whole number from 1 to 10
    messageExpression: |-
      variables.annotations['loadbalancer.openstack.org/health-monitor-max-retries-down'].matches(r'^\P{Cc}{0,250}$') ? 'loadbalancer.openstack.org/health-monitor-max-retries-down is `' + variables.annotations['loadbalancer.openstack.org/health-monitor-max-retries-down'] + '` and must be a whole number from 1 to 10' : ''
  - expression: |-
      !('loadbalancer.openstack.org/node-selector' in variables.touched)
      || (variables.annotations['loadbalancer.openstack.org/node-selector'].matches(r'^[ \t\r\n]*(([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?(=([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?)?)?[ \t\r\n]*(,[ \t\r\n]*(([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?(=([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?)?)?[ \t\r\n]*)*$'))
    message: |-
      loadbalancer.openstack.org/node-selector must be labels with commas between them, such as pool=web,gpu; sets and negations are not known here
    messageExpression: |-
      variables.annotations['loadbalancer.openstack.org/node-selector'].matches(r'^\P{Cc}{0,250}$') ? 'loadbalancer.openstack.org/node-selector is `' + variables.annotations['loadbalancer.openstack.org/node-selector'] + '` and must be labels with commas between them, such as pool=web,gpu; sets and negations are not known here' : ''
  - expression: |-
      !('loadbalancer.openstack.org/hostname' in variables.touched)
      || (variables.annotations['loadbalancer.openstack.org/hostname'].trim() == '' || size(variables.annotations['loadbalancer.openstack.org/hostname'].trim()) <= 253 && variables.annotations['loadbalancer.openstack.org/hostname'].trim().matches(r'^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$') && !isIP(variables.annotations['loadbalancer.openstack.org/hostname'].trim()))
    message: |-
      loadbalancer.openstack.org/hostname must be a DNS name in lower case, such as www.example.org
    messageExpression: |-
      variables.annotations['loadbalancer.openstack.org/hostname'].matches(r'^\P{Cc}{0,250}$') ? 'loadbalancer.openstack.org/hostname is `' + variables.annotations['loadbalancer.openstack.org/hostname'] + '` and must be a DNS name in lower case, such as www.example.org' : ''
  - expression: |-
      !('loadbalancer.openstack.org/proxy-protocol' in variables.touched || 'loadbalancer.openstack.org/x-forwarded-for' in variables.touched)
      || (!('loadbalancer.openstack.org/proxy-protocol' in variables.annotations && variables.annotations['loadbalancer.openstack.org/proxy-protocol'] in ['true', 'v1', 'v2'] && 'loadbalancer.openstack.org/x-forwarded-for' in variables.annotations && variables.annotations['loadbalancer.openstack.org/x-forwarded-for'] == 'true'))
    message: |-
      loadbalancer.openstack.org/proxy-protocol and loadbalancer.openstack.org/x-forwarded-for cannot be used together: remove one of them
  - expression: |-
      !('loadbalancer.openstack.org/x-forwarded-for' in variables.touched || variables.isNew || has(object.spec.ports) != has(oldObject.spec.ports) || has(object.spec.ports) && object.spec.ports != oldObject.spec.ports)
      || (!('loadbalancer.openstack.org/x-forwarded-for' in variables.annotations && variables.annotations['loadbalancer.openstack.org/x-forwarded-for'] == 'true')
      || !has(object.spec.ports) || object.spec.ports.all(p, object.spec.ports.filter(q, q.port == p.port).size() == 1))
    message: |-
      spec.ports: with loadbalancer.openstack.org/x-forwarded-for a port number can stand for one protocol only, because both would be one HTTP listener
  - expression: |-
      !('loadbalancer.openstack.org/x-forwarded-for' in variables.touched || variables.isNew || has(object.spec.ports) != has(oldObject.spec.ports) || has(object.spec.ports) && object.spec.ports != oldObject.spec.ports)
      || (!('loadbalancer.openstack.org/x-forwarded-for' in variables.annotations && variables.annotations['loadbalancer.openstack.org/x-forwarded-for'] == 'true')
      || !has(object.spec.ports) || object.spec.ports.all(p, !has(p.protocol) || p.protocol == 'TCP'))
    message: |-
      spec.ports: with loadbalancer.openstack.org/x-forwarded-for every port must be TCP, because each becomes an HTTP listener. Give the others a Service of their own
  - expression: |-
      !(variables.isNew || has(object.spec.loadBalancerIP) != has(oldObject.spec.loadBalancerIP) || has(object.spec.loadBalancerIP) && object.spec.loadBalancerIP != oldObject.spec.loadBalancerIP)
      || (!has(object.spec.loadBalancerIP) || object.spec.loadBalancerIP.trim() == ''
      || isIP(object.spec.loadBalancerIP.trim()))
    message: |-
      spec.loadBalancerIP must be an IP address. Leave it out, and an address is allocated
  - expression: |-
      !('loadbalancer.openstack.org/default-tls-container-ref' in variables.touched || variables.isNew || has(object.spec.ports) != has(oldObject.spec.ports) || has(object.spec.ports) && object.spec.ports != oldObject.spec.ports)
      || (!('loadbalancer.openstack.org/default-tls-container-ref' in variables.annotations && variables.annotations['loadbalancer.openstack.org/default-tls-container-ref'] != '')
      || !has(object.spec.ports) || object.spec.ports.all(p, !has(p.protocol) || p.protocol == 'TCP'))
    message: |-
      spec.ports: with loadbalancer.openstack.org/default-tls-container-ref every port must be TCP, because TLS ends at the load balancer for all of them. Give the others a Service of their own
{{- end }}
{{- define "bowline.admission.openstack.changes" }}
# A fault in a policy must not keep Services from anybody.
failurePolicy: Ignore
matchConstraints:
  resourceRules:
    - apiGroups: [""]
      apiVersions: [v1]
      operations: [UPDATE]
      resources: [services]
matchConditions:
  - name: load-balancer
    expression: |-
      has(object.spec.type) && object.spec.type == 'LoadBalancer'
  - name: class
    expression: |-
      {{ include "bowline.admission.class" . }}
  - name: not-being-deleted
    expression: |-
      !has(object.metadata.deletionTimestamp)
  - name: load-balancer-before
    expression: |-
      has(oldObject.spec.type) && oldObject.spec.type == 'LoadBalancer'
  - name: made
    expression: |-
      has(oldObject.metadata.annotations) && 'loadbalancer.openstack.org/load-balancer-id' in oldObject.metadata.annotations && oldObject.metadata.annotations['loadbalancer.openstack.org/load-balancer-id'] != ''
variables:
  - name: annotations
    expression: |-
      has(object.metadata.annotations) ? object.metadata.annotations : {}
  - name: before
    expression: |-
      has(oldObject.metadata.annotations) ? oldObject.metadata.annotations : {}
validations:
  - expression: |-
      ('loadbalancer.openstack.org/network-id' in variables.annotations ? variables.annotations['loadbalancer.openstack.org/network-id'] : '') == '' || ('loadbalancer.openstack.org/network-id' in variables.before ? variables.before['loadbalancer.openstack.org/network-id'] : '') == '' || ('loadbalancer.openstack.org/network-id' in variables.annotations ? variables.annotations['loadbalancer.openstack.org/network-id'] : '') == ('loadbalancer.openstack.org/network-id' in variables.before ? variables.before['loadbalancer.openstack.org/network-id'] : '')
    message: |-
      loadbalancer.openstack.org/network-id: a change has no effect on the load balancer that is there. Take it back, or create the Service anew
    messageExpression: |-
      ('loadbalancer.openstack.org/network-id' in variables.annotations ? variables.annotations['loadbalancer.openstack.org/network-id'] : '').matches(r'^\P{Cc}{0,250}$') && ('loadbalancer.openstack.org/network-id' in variables.before ? variables.before['loadbalancer.openstack.org/network-id'] : '').matches(r'^\P{Cc}{0,250}$') ? 'loadbalancer.openstack.org/network-id is ' + (('loadbalancer.openstack.org/network-id' in variables.annotations ? variables.annotations['loadbalancer.openstack.org/network-id'] : '') == '' ? 'not set' : '`' + ('loadbalancer.openstack.org/network-id' in variables.annotations ? variables.annotations['loadbalancer.openstack.org/network-id'] : '') + '`') + ' and was ' + (('loadbalancer.openstack.org/network-id' in variables.before ? variables.before['loadbalancer.openstack.org/network-id'] : '') == '' ? 'not set' : '`' + ('loadbalancer.openstack.org/network-id' in variables.before ? variables.before['loadbalancer.openstack.org/network-id'] : '') + '`') + ': a change has no effect on the load balancer that is there. Take it back, or create the Service anew' : ''
  - expression: |-
      ('loadbalancer.openstack.org/subnet-id' in variables.annotations ? variables.annotations['loadbalancer.openstack.org/subnet-id'] : '') == '' || ('loadbalancer.openstack.org/subnet-id' in variables.before ? variables.before['loadbalancer.openstack.org/subnet-id'] : '') == '' || ('loadbalancer.openstack.org/subnet-id' in variables.annotations ? variables.annotations['loadbalancer.openstack.org/subnet-id'] : '') == ('loadbalancer.openstack.org/subnet-id' in variables.before ? variables.before['loadbalancer.openstack.org/subnet-id'] : '')
    message: |-
      loadbalancer.openstack.org/subnet-id: a change has no effect on the load balancer that is there. Take it back, or create the Service anew
    messageExpression: |-
      ('loadbalancer.openstack.org/subnet-id' in variables.annotations ? variables.annotations['loadbalancer.openstack.org/subnet-id'] : '').matches(r'^\P{Cc}{0,250}$') && ('loadbalancer.openstack.org/subnet-id' in variables.before ? variables.before['loadbalancer.openstack.org/subnet-id'] : '').matches(r'^\P{Cc}{0,250}$') ? 'loadbalancer.openstack.org/subnet-id is ' + (('loadbalancer.openstack.org/subnet-id' in variables.annotations ? variables.annotations['loadbalancer.openstack.org/subnet-id'] : '') == '' ? 'not set' : '`' + ('loadbalancer.openstack.org/subnet-id' in variables.annotations ? variables.annotations['loadbalancer.openstack.org/subnet-id'] : '') + '`') + ' and was ' + (('loadbalancer.openstack.org/subnet-id' in variables.before ? variables.before['loadbalancer.openstack.org/subnet-id'] : '') == '' ? 'not set' : '`' + ('loadbalancer.openstack.org/subnet-id' in variables.before ? variables.before['loadbalancer.openstack.org/subnet-id'] : '') + '`') + ': a change has no effect on the load balancer that is there. Take it back, or create the Service anew' : ''
  - expression: |-
      ('loadbalancer.openstack.org/port-id' in variables.annotations ? variables.annotations['loadbalancer.openstack.org/port-id'] : '') == '' || ('loadbalancer.openstack.org/port-id' in variables.before ? variables.before['loadbalancer.openstack.org/port-id'] : '') == '' || ('loadbalancer.openstack.org/port-id' in variables.annotations ? variables.annotations['loadbalancer.openstack.org/port-id'] : '') == ('loadbalancer.openstack.org/port-id' in variables.before ? variables.before['loadbalancer.openstack.org/port-id'] : '')
    message: |-
      loadbalancer.openstack.org/port-id: a change has no effect on the load balancer that is there. Take it back, or create the Service anew
    messageExpression: |-
      ('loadbalancer.openstack.org/port-id' in variables.annotations ? variables.annotations['loadbalancer.openstack.org/port-id'] : '').matches(r'^\P{Cc}{0,250}$') && ('loadbalancer.openstack.org/port-id' in variables.before ? variables.before['loadbalancer.openstack.org/port-id'] : '').matches(r'^\P{Cc}{0,250}$') ? 'loadbalancer.openstack.org/port-id is ' + (('loadbalancer.openstack.org/port-id' in variables.annotations ? variables.annotations['loadbalancer.openstack.org/port-id'] : '') == '' ? 'not set' : '`' + ('loadbalancer.openstack.org/port-id' in variables.annotations ? variables.annotations['loadbalancer.openstack.org/port-id'] : '') + '`') + ' and was ' + (('loadbalancer.openstack.org/port-id' in variables.before ? variables.before['loadbalancer.openstack.org/port-id'] : '') == '' ? 'not set' : '`' + ('loadbalancer.openstack.org/port-id' in variables.before ? variables.before['loadbalancer.openstack.org/port-id'] : '') + '`') + ': a change has no effect on the load balancer that is there. Take it back, or create the Service anew' : ''
  - expression: |-
      ('loadbalancer.openstack.org/flavor-id' in variables.annotations ? variables.annotations['loadbalancer.openstack.org/flavor-id'] : '') == '' || ('loadbalancer.openstack.org/flavor-id' in variables.before ? variables.before['loadbalancer.openstack.org/flavor-id'] : '') == '' || ('loadbalancer.openstack.org/flavor-id' in variables.annotations ? variables.annotations['loadbalancer.openstack.org/flavor-id'] : '') == ('loadbalancer.openstack.org/flavor-id' in variables.before ? variables.before['loadbalancer.openstack.org/flavor-id'] : '')
    message: |-
      loadbalancer.openstack.org/flavor-id: a change has no effect on the load balancer that is there. Take it back, or create the Service anew
    messageExpression: |-
      ('loadbalancer.openstack.org/flavor-id' in variables.annotations ? variables.annotations['loadbalancer.openstack.org/flavor-id'] : '').matches(r'^\P{Cc}{0,250}$') && ('loadbalancer.openstack.org/flavor-id' in variables.before ? variables.before['loadbalancer.openstack.org/flavor-id'] : '').matches(r'^\P{Cc}{0,250}$') ? 'loadbalancer.openstack.org/flavor-id is ' + (('loadbalancer.openstack.org/flavor-id' in variables.annotations ? variables.annotations['loadbalancer.openstack.org/flavor-id'] : '') == '' ? 'not set' : '`' + ('loadbalancer.openstack.org/flavor-id' in variables.annotations ? variables.annotations['loadbalancer.openstack.org/flavor-id'] : '') + '`') + ' and was ' + (('loadbalancer.openstack.org/flavor-id' in variables.before ? variables.before['loadbalancer.openstack.org/flavor-id'] : '') == '' ? 'not set' : '`' + ('loadbalancer.openstack.org/flavor-id' in variables.before ? variables.before['loadbalancer.openstack.org/flavor-id'] : '') + '`') + ': a change has no effect on the load balancer that is there. Take it back, or create the Service anew' : ''
  - expression: |-
      ('loadbalancer.openstack.org/availability-zone' in variables.annotations ? variables.annotations['loadbalancer.openstack.org/availability-zone'] : '') == '' || ('loadbalancer.openstack.org/availability-zone' in variables.before ? variables.before['loadbalancer.openstack.org/availability-zone'] : '') == '' || ('loadbalancer.openstack.org/availability-zone' in variables.annotations ? variables.annotations['loadbalancer.openstack.org/availability-zone'] : '') == ('loadbalancer.openstack.org/availability-zone' in variables.before ? variables.before['loadbalancer.openstack.org/availability-zone'] : '')
    message: |-
      loadbalancer.openstack.org/availability-zone: a change has no effect on the load balancer that is there. Take it back, or create the Service anew
    messageExpression: |-
      ('loadbalancer.openstack.org/availability-zone' in variables.annotations ? variables.annotations['loadbalancer.openstack.org/availability-zone'] : '').matches(r'^\P{Cc}{0,250}$') && ('loadbalancer.openstack.org/availability-zone' in variables.before ? variables.before['loadbalancer.openstack.org/availability-zone'] : '').matches(r'^\P{Cc}{0,250}$') ? 'loadbalancer.openstack.org/availability-zone is ' + (('loadbalancer.openstack.org/availability-zone' in variables.annotations ? variables.annotations['loadbalancer.openstack.org/availability-zone'] : '') == '' ? 'not set' : '`' + ('loadbalancer.openstack.org/availability-zone' in variables.annotations ? variables.annotations['loadbalancer.openstack.org/availability-zone'] : '') + '`') + ' and was ' + (('loadbalancer.openstack.org/availability-zone' in variables.before ? variables.before['loadbalancer.openstack.org/availability-zone'] : '') == '' ? 'not set' : '`' + ('loadbalancer.openstack.org/availability-zone' in variables.before ? variables.before['loadbalancer.openstack.org/availability-zone'] : '') + '`') + ': a change has no effect on the load balancer that is there. Take it back, or create the Service anew' : ''
  - expression: |-
      ('service.beta.kubernetes.io/openstack-internal-load-balancer' in variables.before ? variables.before['service.beta.kubernetes.io/openstack-internal-load-balancer'] : '') == 'true' || ('service.beta.kubernetes.io/openstack-internal-load-balancer' in variables.annotations ? variables.annotations['service.beta.kubernetes.io/openstack-internal-load-balancer'] : '') != ('service.beta.kubernetes.io/openstack-internal-load-balancer' in variables.before ? variables.before['service.beta.kubernetes.io/openstack-internal-load-balancer'] : '') && ('service.beta.kubernetes.io/openstack-internal-load-balancer' in variables.annotations ? variables.annotations['service.beta.kubernetes.io/openstack-internal-load-balancer'] : '') != 'true'
      || ('loadbalancer.openstack.org/class' in variables.annotations ? variables.annotations['loadbalancer.openstack.org/class'] : '') == '' || ('loadbalancer.openstack.org/class' in variables.annotations ? variables.annotations['loadbalancer.openstack.org/class'] : '') == ('loadbalancer.openstack.org/class' in variables.before ? variables.before['loadbalancer.openstack.org/class'] : '')
    message: |-
      loadbalancer.openstack.org/class: a change counts when a load balancer or a floating IP is created, and has no effect on those that are there. Take it back, or create the Service anew
    messageExpression: |-
      ('loadbalancer.openstack.org/class' in variables.annotations ? variables.annotations['loadbalancer.openstack.org/class'] : '').matches(r'^\P{Cc}{0,250}$') && ('loadbalancer.openstack.org/class' in variables.before ? variables.before['loadbalancer.openstack.org/class'] : '').matches(r'^\P{Cc}{0,250}$') ? 'loadbalancer.openstack.org/class is ' + (('loadbalancer.openstack.org/class' in variables.annotations ? variables.annotations['loadbalancer.openstack.org/class'] : '') == '' ? 'not set' : '`' + ('loadbalancer.openstack.org/class' in variables.annotations ? variables.annotations['loadbalancer.openstack.org/class'] : '') + '`') + ' and was ' + (('loadbalancer.openstack.org/class' in variables.before ? variables.before['loadbalancer.openstack.org/class'] : '') == '' ? 'not set' : '`' + ('loadbalancer.openstack.org/class' in variables.before ? variables.before['loadbalancer.openstack.org/class'] : '') + '`') + ': a change counts when a load balancer or a floating IP is created, and has no effect on those that are there. Take it back, or create the Service anew' : ''
  - expression: |-
      ('service.beta.kubernetes.io/openstack-internal-load-balancer' in variables.before ? variables.before['service.beta.kubernetes.io/openstack-internal-load-balancer'] : '') == 'true' || ('service.beta.kubernetes.io/openstack-internal-load-balancer' in variables.annotations ? variables.annotations['service.beta.kubernetes.io/openstack-internal-load-balancer'] : '') != ('service.beta.kubernetes.io/openstack-internal-load-balancer' in variables.before ? variables.before['service.beta.kubernetes.io/openstack-internal-load-balancer'] : '') && ('service.beta.kubernetes.io/openstack-internal-load-balancer' in variables.annotations ? variables.annotations['service.beta.kubernetes.io/openstack-internal-load-balancer'] : '') != 'true'
      || ('loadbalancer.openstack.org/floating-network-id' in variables.annotations ? variables.annotations['loadbalancer.openstack.org/floating-network-id'] : '') == '' || ('loadbalancer.openstack.org/floating-network-id' in variables.annotations ? variables.annotations['loadbalancer.openstack.org/floating-network-id'] : '') == ('loadbalancer.openstack.org/floating-network-id' in variables.before ? variables.before['loadbalancer.openstack.org/floating-network-id'] : '')
    message: |-
      loadbalancer.openstack.org/floating-network-id: a change counts when a load balancer or a floating IP is created, and has no effect on those that are there. Take it back, or create the Service anew
    messageExpression: |-
      ('loadbalancer.openstack.org/floating-network-id' in variables.annotations ? variables.annotations['loadbalancer.openstack.org/floating-network-id'] : '').matches(r'^\P{Cc}{0,250}$') && ('loadbalancer.openstack.org/floating-network-id' in variables.before ? variables.before['loadbalancer.openstack.org/floating-network-id'] : '').matches(r'^\P{Cc}{0,250}$') ? 'loadbalancer.openstack.org/floating-network-id is ' + (('loadbalancer.openstack.org/floating-network-id' in variables.annotations ? variables.annotations['loadbalancer.openstack.org/floating-network-id'] : '') == '' ? 'not set' : '`' + ('loadbalancer.openstack.org/floating-network-id' in variables.annotations ? variables.annotations['loadbalancer.openstack.org/floating-network-id'] : '') + '`') + ' and was ' + (('loadbalancer.openstack.org/floating-network-id' in variables.before ? variables.before['loadbalancer.openstack.org/floating-network-id'] : '') == '' ? 'not set' : '`' + ('loadbalancer.openstack.org/floating-network-id' in variables.before ? variables.before['loadbalancer.openstack.org/floating-network-id'] : '') + '`') + ': a change counts when a load balancer or a floating IP is created, and has no effect on those that are there. Take it back, or create the Service anew' : ''
  - expression: |-
      ('service.beta.kubernetes.io/openstack-internal-load-balancer' in variables.before ? variables.before['service.beta.kubernetes.io/openstack-internal-load-balancer'] : '') == 'true' || ('service.beta.kubernetes.io/openstack-internal-load-balancer' in variables.annotations ? variables.annotations['service.beta.kubernetes.io/openstack-internal-load-balancer'] : '') != ('service.beta.kubernetes.io/openstack-internal-load-balancer' in variables.before ? variables.before['service.beta.kubernetes.io/openstack-internal-load-balancer'] : '') && ('service.beta.kubernetes.io/openstack-internal-load-balancer' in variables.annotations ? variables.annotations['service.beta.kubernetes.io/openstack-internal-load-balancer'] : '') != 'true'
      || ('loadbalancer.openstack.org/floating-subnet-id' in variables.annotations ? variables.annotations['loadbalancer.openstack.org/floating-subnet-id'] : '') == '' || ('loadbalancer.openstack.org/floating-subnet-id' in variables.annotations ? variables.annotations['loadbalancer.openstack.org/floating-subnet-id'] : '') == ('loadbalancer.openstack.org/floating-subnet-id' in variables.before ? variables.before['loadbalancer.openstack.org/floating-subnet-id'] : '')
    message: |-
      loadbalancer.openstack.org/floating-subnet-id: a change counts when a load balancer or a floating IP is created, and has no effect on those that are there. Take it back, or create the Service anew
    messageExpression: |-
      ('loadbalancer.openstack.org/floating-subnet-id' in variables.annotations ? variables.annotations['loadbalancer.openstack.org/floating-subnet-id'] : '').matches(r'^\P{Cc}{0,250}$') && ('loadbalancer.openstack.org/floating-subnet-id' in variables.before ? variables.before['loadbalancer.openstack.org/floating-subnet-id'] : '').matches(r'^\P{Cc}{0,250}$') ? 'loadbalancer.openstack.org/floating-subnet-id is ' + (('loadbalancer.openstack.org/floating-subnet-id' in variables.annotations ? variables.annotations['loadbalancer.openstack.org/floating-subnet-id'] : '') == '' ? 'not set' : '`' + ('loadbalancer.openstack.org/floating-subnet-id' in variables.annotations ? variables.annotations['loadbalancer.openstack.org/floating-subnet-id'] : '') + '`') + ' and was ' + (('loadbalancer.openstack.org/floating-subnet-id' in variables.before ? variables.before['loadbalancer.openstack.org/floating-subnet-id'] : '') == '' ? 'not set' : '`' + ('loadbalancer.openstack.org/floating-subnet-id' in variables.before ? variables.before['loadbalancer.openstack.org/floating-subnet-id'] : '') + '`') + ': a change counts when a load balancer or a floating IP is created, and has no effect on those that are there. Take it back, or create the Service anew' : ''
  - expression: |-
      ('service.beta.kubernetes.io/openstack-internal-load-balancer' in variables.before ? variables.before['service.beta.kubernetes.io/openstack-internal-load-balancer'] : '') == 'true' || ('service.beta.kubernetes.io/openstack-internal-load-balancer' in variables.annotations ? variables.annotations['service.beta.kubernetes.io/openstack-internal-load-balancer'] : '') != ('service.beta.kubernetes.io/openstack-internal-load-balancer' in variables.before ? variables.before['service.beta.kubernetes.io/openstack-internal-load-balancer'] : '') && ('service.beta.kubernetes.io/openstack-internal-load-balancer' in variables.annotations ? variables.annotations['service.beta.kubernetes.io/openstack-internal-load-balancer'] : '') != 'true'
      || ('loadbalancer.openstack.org/floating-subnet' in variables.annotations ? variables.annotations['loadbalancer.openstack.org/floating-subnet'] : '') == '' || ('loadbalancer.openstack.org/floating-subnet' in variables.annotations ? variables.annotations['loadbalancer.openstack.org/floating-subnet'] : '') == ('loadbalancer.openstack.org/floating-subnet' in variables.before ? variables.before['loadbalancer.openstack.org/floating-subnet'] : '')
    message: |-
      loadbalancer.openstack.org/floating-subnet: a change counts when a load balancer or a floating IP is created, and has no effect on those that are there. Take it back, or create the Service anew
    messageExpression: |-
      ('loadbalancer.openstack.org/floating-subnet' in variables.annotations ? variables.annotations['loadbalancer.openstack.org/floating-subnet'] : '').matches(r'^\P{Cc}{0,250}$') && ('loadbalancer.openstack.org/floating-subnet' in variables.before ? variables.before['loadbalancer.openstack.org/floating-subnet'] : '').matches(r'^\P{Cc}{0,250}$') ? 'loadbalancer.openstack.org/floating-subnet is ' + (('loadbalancer.openstack.org/floating-subnet' in variables.annotations ? variables.annotations['loadbalancer.openstack.org/floating-subnet'] : '') == '' ? 'not set' : '`' + ('loadbalancer.openstack.org/floating-subnet' in variables.annotations ? variables.annotations['loadbalancer.openstack.org/floating-subnet'] : '') + '`') + ' and was ' + (('loadbalancer.openstack.org/floating-subnet' in variables.before ? variables.before['loadbalancer.openstack.org/floating-subnet'] : '') == '' ? 'not set' : '`' + ('loadbalancer.openstack.org/floating-subnet' in variables.before ? variables.before['loadbalancer.openstack.org/floating-subnet'] : '') + '`') + ': a change counts when a load balancer or a floating IP is created, and has no effect on those that are there. Take it back, or create the Service anew' : ''
  - expression: |-
      ('service.beta.kubernetes.io/openstack-internal-load-balancer' in variables.before ? variables.before['service.beta.kubernetes.io/openstack-internal-load-balancer'] : '') == 'true' || ('service.beta.kubernetes.io/openstack-internal-load-balancer' in variables.annotations ? variables.annotations['service.beta.kubernetes.io/openstack-internal-load-balancer'] : '') != ('service.beta.kubernetes.io/openstack-internal-load-balancer' in variables.before ? variables.before['service.beta.kubernetes.io/openstack-internal-load-balancer'] : '') && ('service.beta.kubernetes.io/openstack-internal-load-balancer' in variables.annotations ? variables.annotations['service.beta.kubernetes.io/openstack-internal-load-balancer'] : '') != 'true'
      || ('loadbalancer.openstack.org/floating-subnet-tags' in variables.annotations ? variables.annotations['loadbalancer.openstack.org/floating-subnet-tags'] : '') == '' || ('loadbalancer.openstack.org/floating-subnet-tags' in variables.annotations ? variables.annotations['loadbalancer.openstack.org/floating-subnet-tags'] : '') == ('loadbalancer.openstack.org/floating-subnet-tags' in variables.before ? variables.before['loadbalancer.openstack.org/floating-subnet-tags'] : '')
    message: |-
      loadbalancer.openstack.org/floating-subnet-tags: a change counts when a load balancer or a floating IP is created, and has no effect on those that are there. Take it back, or create the Service anew
    messageExpression: |-
      ('loadbalancer.openstack.org/floating-subnet-tags' in variables.annotations ? variables.annotations['loadbalancer.openstack.org/floating-subnet-tags'] : '').matches(r'^\P{Cc}{0,250}$') && ('loadbalancer.openstack.org/floating-subnet-tags' in variables.before ? variables.before['loadbalancer.openstack.org/floating-subnet-tags'] : '').matches(r'^\P{Cc}{0,250}$') ? 'loadbalancer.openstack.org/floating-subnet-tags is ' + (('loadbalancer.openstack.org/floating-subnet-tags' in variables.annotations ? variables.annotations['loadbalancer.openstack.org/floating-subnet-tags'] : '') == '' ? 'not set' : '`' + ('loadbalancer.openstack.org/floating-subnet-tags' in variables.annotations ? variables.annotations['loadbalancer.openstack.org/floating-subnet-tags'] : '') + '`') + ' and was ' + (('loadbalancer.openstack.org/floating-subnet-tags' in variables.before ? variables.before['loadbalancer.openstack.org/floating-subnet-tags'] : '') == '' ? 'not set' : '`' + ('loadbalancer.openstack.org/floating-subnet-tags' in variables.before ? variables.before['loadbalancer.openstack.org/floating-subnet-tags'] : '') + '`') + ': a change counts when a load balancer or a floating IP is created, and has no effect on those that are there. Take it back, or create the Service anew' : ''
  - expression: |-
      !has(object.spec.loadBalancerIP) || object.spec.loadBalancerIP == ''
      || ('service.beta.kubernetes.io/openstack-internal-load-balancer' in variables.annotations ? variables.annotations['service.beta.kubernetes.io/openstack-internal-load-balancer'] : '') != ('service.beta.kubernetes.io/openstack-internal-load-balancer' in variables.before ? variables.before['service.beta.kubernetes.io/openstack-internal-load-balancer'] : '')
      || has(oldObject.spec.loadBalancerIP) && (object.spec.loadBalancerIP.trim() == oldObject.spec.loadBalancerIP.trim() || isIP(object.spec.loadBalancerIP.trim()) && isIP(oldObject.spec.loadBalancerIP.trim()) && ip(object.spec.loadBalancerIP.trim()) == ip(oldObject.spec.loadBalancerIP.trim()))
      || 'loadbalancer.openstack.org/load-balancer-address' in variables.before && (object.spec.loadBalancerIP.trim() == variables.before['loadbalancer.openstack.org/load-balancer-address'].trim() || isIP(object.spec.loadBalancerIP.trim()) && isIP(variables.before['loadbalancer.openstack.org/load-balancer-address'].trim()) && ip(object.spec.loadBalancerIP.trim()) == ip(variables.before['loadbalancer.openstack.org/load-balancer-address'].trim()))
      || has(oldObject.status) && has(oldObject.status.loadBalancer) && has(oldObject.status.loadBalancer.ingress) && size(oldObject.status.loadBalancer.ingress) > 0 && oldObject.status.loadBalancer.ingress.exists(i, has(i.ip) && (object.spec.loadBalancerIP.trim() == i.ip.trim() || isIP(object.spec.loadBalancerIP.trim()) && isIP(i.ip.trim()) && ip(object.spec.loadBalancerIP.trim()) == ip(i.ip.trim())))
    message: |-
      spec.loadBalancerIP: the load balancer has another address and keeps it. Take the change back, or create the Service anew
  - expression: |-
      !has(object.spec.ipFamilies) || size(object.spec.ipFamilies) < 2
      || has(oldObject.spec.ipFamilies) && size(oldObject.spec.ipFamilies) > 1
    message: |-
      spec.ipFamilies: a load balancer that is there gets no second address. Take the change back, or create the Service anew
{{- end }}
