// Command dns answers for the Services of the cluster, as far as workloads need: addresses of a Service, of the
// endpoints of a headless one, and of one endpoint by its host name (NAME.SERVICE.NAMESPACE.svc.cluster.local).
// It knows no other names. It keeps nothing: each question is one or two requests to the API server.
//
//	dns ADDRESS API-URL PKI-DIRECTORY
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

const (
	zone    = ".svc.cluster.local."
	ttl     = 5 // seconds
	maxSize = 512
	limit   = 2 * time.Second // for the API server; a resolver asks again after 5 s
)

var errNoName = errors.New("no such name")

type resolver struct {
	client *http.Client
	api    string
}

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: dns ADDRESS API-URL PKI-DIRECTORY")
		os.Exit(2)
	}
	if err := serve(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "dns:", err)
		os.Exit(1)
	}
}

func serve(address, api, pki string) error {
	cert, err := tls.LoadX509KeyPair(filepath.Join(pki, "admin.crt"), filepath.Join(pki, "admin.key"))
	if err != nil {
		return err
	}
	ca, err := os.ReadFile(filepath.Join(pki, "ca.crt"))
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	r := &resolver{api: api, client: &http.Client{
		Timeout:   limit,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{Certificates: []tls.Certificate{cert}, RootCAs: roots}},
	}}
	conn, err := new(net.ListenConfig).ListenPacket(context.Background(), "udp", address)
	if err != nil {
		return err
	}
	for {
		buf := make([]byte, maxSize)
		n, from, err := conn.ReadFrom(buf)
		if err != nil {
			return err
		}
		go func() {
			if reply, err := r.answer(buf[:n]); err != nil {
				fmt.Fprintln(os.Stderr, "dns:", err)
			} else {
				_, _ = conn.WriteTo(reply, from) // lost like any packet
			}
		}()
	}
}

// answer fails only for what is no question.
func (r *resolver) answer(packet []byte) ([]byte, error) {
	var m dnsmessage.Message
	if err := m.Unpack(packet); err != nil {
		return nil, err
	}
	if len(m.Questions) != 1 || m.Response {
		return nil, errors.New("not one question")
	}
	q := m.Questions[0]
	reply := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: m.ID, Response: true, Authoritative: true, RecursionDesired: m.RecursionDesired},
		Questions: m.Questions,
	}
	addresses, err := r.lookup(strings.ToLower(q.Name.String()))
	switch {
	case errors.Is(err, errNoName):
		reply.RCode = dnsmessage.RCodeNameError
	case err != nil:
		fmt.Fprintf(os.Stderr, "dns: %s: %v\n", q.Name, err)
		reply.RCode = dnsmessage.RCodeServerFailure
	case q.Type == dnsmessage.TypeA: // to others: the name is there, but has no such record
		for _, a := range addresses {
			reply.Answers = append(reply.Answers, dnsmessage.Resource{
				Header: dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET, TTL: ttl},
				Body:   &dnsmessage.AResource{A: a.As4()},
			})
		}
	}
	return reply.Pack()
}

func (r *resolver) lookup(name string) ([]netip.Addr, error) {
	labels := strings.Split(strings.TrimSuffix(name, zone), ".")
	if !strings.HasSuffix(name, zone) || len(labels) < 2 || len(labels) > 3 {
		return nil, errNoName
	}
	host := ""
	if len(labels) == 3 {
		host, labels = labels[0], labels[1:]
	}
	service, namespace := url.PathEscape(labels[0]), url.PathEscape(labels[1])
	var s struct{ Spec struct{ ClusterIP string } }
	if err := r.get(&s, "/api/v1/namespaces/"+namespace+"/services/"+service); err != nil {
		return nil, err
	}
	if a, err := netip.ParseAddr(s.Spec.ClusterIP); err == nil && host == "" {
		return only4([]string{a.String()}), nil
	}
	return r.endpoints(namespace, service, host)
}

// endpoints are those that are ready, of all host names or of one.
func (r *resolver) endpoints(namespace, service, host string) ([]netip.Addr, error) {
	var slices struct {
		Items []struct {
			Endpoints []struct {
				Addresses  []string
				Hostname   string
				Conditions struct{ Ready *bool }
			}
		}
	}
	err := r.get(&slices, "/apis/discovery.k8s.io/v1/namespaces/"+namespace+
		"/endpointslices?labelSelector=kubernetes.io/service-name="+service)
	if err != nil {
		return nil, err
	}
	var found []netip.Addr
	for _, s := range slices.Items {
		for _, e := range s.Endpoints {
			ready := e.Conditions.Ready == nil || *e.Conditions.Ready
			if ready && (host == "" || host == e.Hostname) {
				found = append(found, only4(e.Addresses)...)
			}
		}
	}
	if len(found) == 0 {
		return nil, errNoName
	}
	return found, nil
}

func only4(texts []string) (addresses []netip.Addr) {
	for _, t := range texts {
		if a, err := netip.ParseAddr(t); err == nil && a.Is4() {
			addresses = append(addresses, a)
		}
	}
	return addresses
}

func (r *resolver) get(into any, path string) error {
	res, err := r.client.Get(r.api + path)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	switch res.StatusCode {
	case http.StatusOK:
		return json.NewDecoder(res.Body).Decode(into)
	case http.StatusNotFound:
		return errNoName
	}
	return fmt.Errorf("%s: %s", path, res.Status)
}
