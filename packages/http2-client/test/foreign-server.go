// Go's net/http in front of an HTTP/1.1 server: foreign-server <port> <upstream port> <certificate> <key>
// It sends GOAWAY with every thousandth answer, and ends politely on SIGTERM.
package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
)

func main() {
	upstream, _ := url.Parse("http://127.0.0.1:" + os.Args[2])
	var answers atomic.Int64
	proxy := httputil.NewSingleHostReverseProxy(upstream)
	proxy.Transport = &http.Transport{MaxIdleConnsPerHost: 500, ReadBufferSize: 65_536}
	proxy.ModifyResponse = func(response *http.Response) error {
		if answers.Add(1)%1_000 == 0 {
			response.Header.Set("Connection", "close") // net/http turns it into GOAWAY
		}
		return nil
	}
	server := &http.Server{Addr: "127.0.0.1:" + os.Args[1], Handler: proxy}
	stop, _ := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	ended := make(chan error)
	go func() {
		<-stop.Done()
		ended <- server.Shutdown(context.Background())
	}()
	if err := server.ListenAndServeTLS(os.Args[3], os.Args[4]); err != http.ErrServerClosed {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	<-ended
}
