// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Takes the head descriptors of a job, once all its reads have ended, and hands them in ring order
// to the prefetch RAM of their queue. Room was reserved by vq_avail. Three cycles an entry. A read
// that failed or an entry outside the ring stops the whole device (DEVICE_NEEDS_RESET).
`include "ferronic_assert.svh"
module vq_desc_load
  import ferronic_pkg::*;
  import vq_pkg::*;
(
  input  logic         clk_i,
  input  logic         rst_ni,
  input  logic         fn_rst_i,

  input  logic         load_valid_i,
  output logic         load_ready_o,
  input  vq_job_t      load_job_i,
  input  logic [4:0]   load_reads_i,
  input  logic         load_addr1_i,
  input  logic         load_bad_i,
  input  dma_rd_done_t done_i,

  output logic         ram_req_o,
  output logic [8:0]   ram_addr_o,
  input  logic         ram_gnt_i,
  input  logic         ram_valid_i,
  input  logic [63:0]  ram_data_i,

  // Heads to the prefetch RAM, always taken.
  output logic         head_valid_o,
  output qid_t         head_q_o,
  output vq_head_t     head_o,

  output logic         slot_free_o,
  output logic         error_o,
  output qid_t         error_q_o,
  output logic         idle_o
);
  localparam int unsigned W = $bits(vq_job_t) + 5 + 1 + 1;
  typedef enum logic [2:0] {StIdle, StIds, StIdsWait, StDesc0, StDesc1, StDesc2, StDone} st_e;

  st_e         st_q;
  vq_job_t     job_q, job;
  logic [4:0]  reads;
  logic        addr1_q, addr1, bad_q, bad;
  logic        valid, pop;
  logic [3:0]  level;
  logic [4:0]  i_q;
  logic [63:0] ids_q, lo_q;
  logic [7:0]  done_count_q;  // reads ended and not yet claimed by a job
  logic        done_err_q;

  prim_fifo #(.Width(W), .Depth(JobSlots)) u_jobs (
    .clk_i, .rst_ni, .clr_i(fn_rst_i),
    .wr_valid_i(load_valid_i), .wr_ready_o(load_ready_o),
    .wr_data_i({load_job_i, load_reads_i, load_addr1_i, load_bad_i}),
    .rd_valid_o(valid), .rd_ready_i(pop), .rd_data_o({job, reads, addr1, bad}), .level_o(level)
  );

  vq_cookie_t cookie;
  assign cookie = vq_cookie_t'(done_i.cookie);
  wire done = done_i.valid && (cookie.client == ClDesc);

  assign pop = (st_q == StIdle) && valid && (done_count_q >= {3'd0, reads});

  wire [5:0]  half = {1'b0, i_q} + {5'd0, addr1_q};
  wire        last = (i_q + 5'd1 == job_q.count);

  // Reads are asked for one cycle ahead of their use: ids, then two words a descriptor.
  always_comb begin
    ram_req_o  = 1'b0;
    ram_addr_o = {CtlDesc[11], job_q.slot, i_q[3:0], 1'b0};
    unique case (st_q)
      StIds: begin
        ram_req_o  = 1'b1;
        ram_addr_o = {CtlAvail[11:9], job_q.slot, half[4:2]};
      end
      StDesc0: ram_req_o = 1'b1;
      StDesc1: begin
        ram_req_o     = ram_valid_i;
        ram_addr_o[0] = 1'b1;
      end
      default: ;
    endcase
  end

  wire [63:0] hi = ram_data_i;
  wire        stored = (st_q == StDesc2) && ram_valid_i;
  assign head_valid_o = stored;
  assign head_q_o     = job_q.q;
  assign head_o = '{
    indirect:   hi[32 + DescFlagIndirect],
    write:      hi[32 + DescFlagWrite],
    next_valid: hi[32 + DescFlagNext],
    next:       hi[63:48],
    id:         ids_q[16*half[1:0] +: 16],
    len:        hi[31:0],
    addr:       lo_q
  };

  assign slot_free_o = (st_q == StDone);
  assign error_o     = (st_q == StDone) && bad_q;
  assign error_q_o   = job_q.q;
  assign idle_o      = (st_q == StIdle) && !valid;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      st_q         <= StIdle;
      done_count_q <= '0;
      done_err_q   <= 1'b0;
    end else if (fn_rst_i) begin
      st_q         <= StIdle;
      done_count_q <= '0;
      done_err_q   <= 1'b0;
    end else begin
      done_count_q <= done_count_q + 8'(done) - (pop ? {3'd0, reads} : 8'd0);
      // Any failed descriptor read is fatal for the device, so it need not be told whose it was.
      if (done && done_i.err) done_err_q <= 1'b1;
      unique case (st_q)
        StIdle: if (pop) st_q <= (bad || done_err_q) ? StDone : StIds;
        StIds: if (ram_gnt_i) st_q <= StIdsWait;
        StIdsWait: if (ram_valid_i) st_q <= StDesc0;
        StDesc0: if (ram_gnt_i) st_q <= StDesc1;
        // The first word arrives here; a lost arbitration is asked for again.
        StDesc1: if (ram_valid_i && ram_gnt_i) st_q <= StDesc2;
                 else if (ram_valid_i) st_q <= StDesc0;
        StDesc2: begin
          if (ram_valid_i) begin
            if (last) st_q <= StDone;
            else if (half[1:0] == 2'd3) st_q <= StIds;
            else st_q <= StDesc0;
          end
        end
        StDone: st_q <= StIdle;
        default: st_q <= StIdle;
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    unique case (st_q)
      StIdle: begin
        job_q   <= job;
        addr1_q <= addr1;
        bad_q   <= bad || done_err_q;
        i_q     <= '0;
      end
      StIdsWait: if (ram_valid_i) ids_q <= ram_data_i;
      StDesc1: lo_q <= ram_data_i;
      StDesc2: if (ram_valid_i) i_q <= i_q + 5'd1;
      default: ;
    endcase
  end

  logic unused;
  assign unused = ^{level, cookie, hi[47:35], half[5], CtlDesc[10:0]};
endmodule
