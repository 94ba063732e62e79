module ebb/bench/http/peers/go

go 1.24
