/**
 * Ranges of addresses that hold no public hosts: one list for webhooks' addresses, the node's rules for metered networks
 * and the network policy of the Kubernetes manifests.
 */

/** IPv4 ranges that are not public. Source: IANA's registry of special purpose addresses. */
export const NON_PUBLIC_IPV4 = [
  '0.0.0.0/8', // this network, unspecified
  '10.0.0.0/8', // private
  '100.64.0.0/10', // shared, and Alibaba's metadata
  '127.0.0.0/8', // loopback
  '168.63.129.16/32', // Azure WireServer: metadata on a public address
  '169.254.0.0/16', // link-local, and metadata
  '172.16.0.0/12', // private
  '192.0.0.0/24', // protocol assignments, and Oracle's metadata
  '192.0.2.0/24', // documentation
  '192.88.99.0/24', // relays of 6to4
  '192.168.0.0/16', // private
  '198.18.0.0/15', // benchmarks
  '198.51.100.0/24', // documentation
  '203.0.113.0/24', // documentation
  '224.0.0.0/4', // multicast
  '240.0.0.0/4', // reserved, broadcast
];

/** The range of public hosts; everything outside is loopback, link-local, unique local, multicast or reserved. */
export const PUBLIC_IPV6 = '2000::/3';

/** Parts of `PUBLIC_IPV6` that are not public. */
export const NON_PUBLIC_IPV6 = [
  '2001::/23', // protocol assignments, Teredo
  '2001:db8::/32', // documentation
  '3fff::/20', // documentation
];

/**
 * IPv6 ranges whose addresses lead to the IPv4 address in them, `above_end_bits` above their end: mapped addresses, NAT64,
 * 6to4. `holding`: the address with these two groups in that place.
 */
export const EMBEDDING_IPV6 = [
  { range: '::ffff:0:0/96', above_end_bits: 0, holding: (ipv4: string) => `::ffff:${ipv4}` },
  { range: '64:ff9b::/96', above_end_bits: 0, holding: (ipv4: string) => `64:ff9b::${ipv4}` },
  { range: '2002::/16', above_end_bits: 80, holding: (ipv4: string) => `2002:${ipv4}::` },
];
