export default { testEnvironment: 'jsdom', testMatch: ['**/shared/*.spec.js'], transform: {} };
