// Package httpfault says what went wrong with an HTTP request that got no
// answer, in words that hold no URL: one may carry a credential.
package httpfault

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/url"
)

// BadCertificate reports whether err says that the server could not prove who
// it is, or does not speak TLS at all. To ask again does not help.
func BadCertificate(err error) bool {
	var (
		verify  *tls.CertificateVerificationError
		unknown x509.UnknownAuthorityError
		name    x509.HostnameError
		record  tls.RecordHeaderError
	)
	return errors.As(err, &verify) || errors.As(err, &unknown) || errors.As(err, &name) || errors.As(err, &record)
}

// BareText is the text of an error without the URL that net/http puts around
// it, and without what was written around that.
func BareText(err error) string {
	var withURL *url.Error
	for errors.As(err, &withURL) {
		err = withURL.Err
	}
	return err.Error()
}

// Ended says why a request was left whose context, ctx, has ended.
func Ended(ctx context.Context) string {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return "no answer within the time limit"
	}
	return "the call was cancelled"
}
