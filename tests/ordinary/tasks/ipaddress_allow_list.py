# result: {"allowed": ["10.1.2.3", "2001:db8::1"], "hosts": ["192.168.1.1", "192.168.1.2"], "private": true, "collapsed": ["10.0.0.0/24"], "problem": "'300.1.1.1' does not appear to be an IPv4 or IPv6 address"}
import ipaddress


async def main():
    networks = [ipaddress.ip_network(n) for n in ("10.0.0.0/8", "192.168.1.0/28", "2001:db8::/32")]
    addresses = ["10.1.2.3", "192.168.1.20", "2001:db8::1", "8.8.8.8"]
    allowed = [a for a in addresses if any(ipaddress.ip_address(a) in n for n in networks)]
    try:
        ipaddress.ip_address("300.1.1.1")
    except ValueError as e:
        problem = str(e)
    return {
        "allowed": allowed,
        "hosts": [str(h) for h in list(networks[1].hosts())[:2]],
        "private": ipaddress.ip_address("10.1.2.3").is_private,
        "collapsed": [str(n) for n in ipaddress.collapse_addresses(map(ipaddress.ip_network, ("10.0.0.0/25", "10.0.0.128/25")))],
        "problem": problem,
    }
