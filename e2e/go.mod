module github.com/soloist-dev/soloist/e2e

go 1.26.0
